#include "traces/pcapng_writer.hpp"

#include <stdexcept>

namespace tributary {

namespace {

/// Host order for pcapng's own fields (the section header says which), network order inside packets.
template <typename Number>
void host(std::string& to, Number value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

void network(std::string& to, std::uint64_t value, unsigned bytes) {
  for (unsigned b = bytes; b-- > 0;) to += static_cast<char>(value >> (8 * b) & 0xff);
}

void option(std::string& to, std::uint16_t code, const std::string& value) {
  host(to, code);
  host(to, static_cast<std::uint16_t>(value.size()));
  to += value;
  to.append((4 - value.size() % 4) % 4, '\0');
}

void end_of_options(std::string& to) { host(to, std::uint32_t{0}); }

std::string headers(const burst_content& sent) {
  std::string packet;
  const std::uint32_t group_address = 0xef010000U | sent.group;  // 239.1.x.y: administratively scoped (RFC 2365)
  const bool merged = sent.kind == burst_kind::aggregate;
  // Ethernet: multicast groups map to 01:00:5e (RFC 1112); stations are locally administered.
  if (merged) {
    network(packet, 0x020000000000ULL | sent.source, 6);
  } else {
    network(packet, 0x01005e000000ULL | (group_address & 0x7fffff), 6);
  }
  network(packet, 0x020000000000ULL | sent.source, 6);
  network(packet, 0x0800, 2);

  std::string ip;
  network(ip, 0x45, 1);
  network(ip, 0, 1);
  network(ip, 20 + 8 + 24 + sent.payload_bytes, 2);
  network(ip, sent.offset_bytes / 1000 & 0xffff, 2);
  network(ip, 0x4000, 2);  // don't fragment
  network(ip, 64, 1);
  network(ip, 17, 1);
  network(ip, 0, 2);
  network(ip, 0x0a000001U + sent.source, 4);  // 10.0.0.1 + site
  network(ip, merged ? 0x0a000001U + sent.source : group_address, 4);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < ip.size(); i += 2) {
    sum += static_cast<std::uint32_t>(static_cast<unsigned char>(ip[i]) << 8 | static_cast<unsigned char>(ip[i + 1]));
  }
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  ip[10] = static_cast<char>(~sum >> 8 & 0xff);
  ip[11] = static_cast<char>(~sum & 0xff);
  packet += ip;

  network(packet, 20000, 2);
  network(packet, 20000, 2);
  network(packet, 8 + 24 + sent.payload_bytes, 2);
  network(packet, 0, 2);  // no UDP checksum (RFC 768)

  network(packet, sent.round, 4);
  network(packet, sent.group, 2);
  network(packet, sent.source, 2);
  network(packet, sent.chunk, 4);
  network(packet, sent.offset_bytes, 4);
  network(packet, sent.payload_bytes, 4);
  network(packet, static_cast<unsigned>(__builtin_popcountll(sent.contributors)), 2);
  network(packet, static_cast<unsigned>(sent.kind), 2);
  return packet;
}

}  // namespace

pcapng_writer::pcapng_writer(const std::string& path, const std::vector<std::string>& interfaces)
    : path_(path), file_(std::fopen(path.c_str(), "wb")) {
  if (file_ == nullptr) throw std::runtime_error("cannot write " + path);
  std::string section;
  host(section, std::uint32_t{0x1a2b3c4d});
  host(section, std::uint16_t{1});
  host(section, std::uint16_t{0});
  host(section, ~std::uint64_t{0});
  block(0x0a0d0d0a, section);
  for (const std::string& name : interfaces) {
    std::string description;
    host(description, std::uint16_t{1});  // LINKTYPE_ETHERNET
    host(description, std::uint16_t{0});
    host(description, std::uint32_t{header_bytes});
    option(description, 2, name);                    // if_name
    option(description, 9, std::string(1, '\x0c'));  // if_tsresol: 10^-12 s
    end_of_options(description);
    block(1, description);
  }
}

pcapng_writer::~pcapng_writer() {
  if (file_ == nullptr) return;
  std::fclose(file_);
  std::remove(path_.c_str());
}

void pcapng_writer::block(std::uint32_t type, const std::string& body) {
  std::string whole;
  const auto length = static_cast<std::uint32_t>(12 + body.size());
  host(whole, type);
  host(whole, length);
  whole += body;
  host(whole, length);
  (void)std::fwrite(whole.data(), 1, whole.size(), file_);  // ferror is asked at close
}

void pcapng_writer::packet(unsigned interface, picoseconds start, const burst_content& sent) {
  const std::string captured = headers(sent);
  std::string body;
  host(body, static_cast<std::uint32_t>(interface));
  host(body, static_cast<std::uint32_t>(start >> 32));
  host(body, static_cast<std::uint32_t>(start & 0xffffffff));
  host(body, static_cast<std::uint32_t>(captured.size()));
  host(body, static_cast<std::uint32_t>(captured.size() + sent.payload_bytes));
  body += captured;
  body.append((4 - captured.size() % 4) % 4, '\0');
  block(6, body);
  ++packets_;
}

void pcapng_writer::close() {
  const bool failed = std::ferror(file_) != 0;
  const bool unclosed = std::fclose(file_) != 0;
  file_ = nullptr;
  if (failed || unclosed) {
    std::remove(path_.c_str());
    throw std::runtime_error("writing " + path_ + " failed (disk full?)");
  }
}

}  // namespace tributary
