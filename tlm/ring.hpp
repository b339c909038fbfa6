// A growing first-in first-out ring: no allocation once it has reached its working size.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace tributary {

template <typename Item>
class ring {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] Item& front() { return items_[first_]; }
  [[nodiscard]] const Item& front() const { return items_[first_]; }

  /// The i-th from the front.
  [[nodiscard]] Item& operator[](std::size_t i) { return items_[(first_ + i) & (items_.size() - 1)]; }
  [[nodiscard]] const Item& operator[](std::size_t i) const { return items_[(first_ + i) & (items_.size() - 1)]; }

  void push(Item item) {
    if (count_ == items_.size()) grow();
    items_[(first_ + count_) & (items_.size() - 1)] = std::move(item);
    ++count_;
  }
  void pop() {
    first_ = (first_ + 1) & (items_.size() - 1);
    --count_;
  }

 private:
  void grow() {
    std::vector<Item> larger(items_.empty() ? 8 : items_.size() * 2);
    for (std::size_t i = 0; i < count_; ++i) larger[i] = std::move(items_[(first_ + i) & (items_.size() - 1)]);
    items_ = std::move(larger);
    first_ = 0;
  }

  std::vector<Item> items_;
  std::size_t first_ = 0;
  std::size_t count_ = 0;
};

}  // namespace tributary
