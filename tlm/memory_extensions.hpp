// What our initiators add to the generic payload.
#pragma once

#include <tlm>

namespace tributary {

/// Ignorable extension: this access is made for its time alone. A memory that knows it need not move the data; one that
/// does not know it may, the data pointer is valid for the whole length.
class timing_only : public tlm::tlm_extension<timing_only> {
 public:
  [[nodiscard]] tlm::tlm_extension_base* clone() const override { return new timing_only; }
  void copy_from(const tlm::tlm_extension_base& /*other*/) override {}
};

}  // namespace tributary
