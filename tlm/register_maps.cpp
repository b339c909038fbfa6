#include "tlm/register_maps.hpp"

#include <limits>

namespace tributary {

namespace {
constexpr auto ro = register_access::read_only;
constexpr auto rw = register_access::read_write;
constexpr auto wo = register_access::write_only;
constexpr std::uint64_t any = std::numeric_limits<std::uint64_t>::max();
}  // namespace

const register_map aggregator_registers{
    "fpga_aggregator",
    {
        {"ID", ro, 0, "site", "number of the site this aggregator belongs to"},
        {"STATUS", ro, 0, "bits", "1 busy, 2 done, 4 error (see ERROR); cleared by CONTROL = 2"},
        {"CONTROL", wo, 2, "command", "1 start a round, 2 clear STATUS and ERROR and drop any round in progress"},
        {"ERROR", ro, 0, "code", "1 started while busy, 2 zero chunk or update, 3 slot region, 4 members or policy"},
        {"ROUND", rw, 0xffffffff, "number", "round that arriving bursts must carry"},
        {"GROUP", rw, 0xffff, "number", "group within the round"},
        {"MEMBERS", rw, any, "bit set", "sites of the group, this one included"},
        {"UPDATE_BYTES", rw, any, "bytes", "size of the update"},
        {"CHUNK_BYTES", rw, 0xffffffff, "bytes", "size of a chunk; the last one may be shorter"},
        {"SLOT_BASE", rw, any, "address", "first byte of the slot region in aggregator memory"},
        {"SLOT_COUNT", rw, 0xffffffff, "slots", "slots of CHUNK_BYTES each from SLOT_BASE"},
        {"POLICY", rw, 2, "enum", "0 per_stream, 1 in_place, 2 none (forward unmerged)"},
        {"CREDIT_WINDOW", rw, 0xffffffff, "chunks",
         "0: senders are paced; else chunks a sender may be ahead of MERGED_CHUNKS"},
        {"CREDIT_INITIAL", rw, 0xffffffff, "chunks",
         "what the senders start with; the difference to CREDIT_WINDOW is granted at once"},
        {"CREDIT_BATCH", rw, 0xffffffff, "chunks", "merged chunks between two credits"},
        {"MERGED_CHUNKS", ro, 0, "chunks", "chunks merged in this round"},
        {"DUPLICATE_BURSTS", ro, 0, "bursts", "dropped because their bytes had already arrived"},
        {"LATE_BURSTS", ro, 0, "bursts", "dropped because they belong to another round, group or source"},
        {"HIGH_WATER_BYTES", ro, 0, "bytes", "largest slot occupancy in this round"},
    }};

const register_map cluster_registers{
    "gpu_cluster",
    {
        {"ID", ro, 0, "site", "number of the site"},
        {"STATUS", ro, 0, "bits", "1 busy, 2 done, 4 error (see ERROR); cleared by CONTROL = 2"},
        {"CONTROL", wo, 2, "command", "1 start a round, 2 clear STATUS and ERROR"},
        {"ERROR", ro, 0, "code", "1 started while busy, 2 zero chunk or update, 4 not a member of the group"},
        {"ROUND", rw, 0xffffffff, "number", "round that bursts carry"},
        {"GROUP", rw, 0xffff, "number", "group within the round"},
        {"MEMBERS", rw, any, "bit set", "sites of the group, this one included; alone: compute only"},
        {"UPDATE_BYTES", rw, any, "bytes", "size of the update"},
        {"CHUNK_BYTES", rw, 0xffffffff, "bytes", "size of a chunk; the last one may be shorter"},
        {"PACE_PS", rw, any, "ps", "time from one chunk's departure to the next; 0: as fast as the link takes them"},
        {"OFFSET_PS", rw, any, "ps", "send offset: wait between the update's release and the first chunk"},
        {"CREDIT_WINDOW", rw, 0xffffffff, "chunks",
         "0: no credits needed; else chunks it may send before the first credit"},
        {"SENT_CHUNKS", ro, 0, "chunks", "chunks handed to the network in this round"},
        {"RECEIVED_CHUNKS", ro, 0, "chunks", "merged chunks received in this round"},
        {"MISMATCHES", ro, 0, "elements", "real values that differ from the direct reduction, all rounds"},
    }};

const register_map router_registers{
    "multicast_router",
    {
        {"ID", ro, 0, "router", "number of the router"},
        {"STATUS", ro, 0, "bits", "always 0: a router is never busy"},
        {"CONTROL", wo, 2, "command", "1 add the entry (GROUP, SOURCE) -> PORTS, 2 remove all entries"},
        {"GROUP", rw, 0xffff, "number", "group of the entry"},
        {"SOURCE", rw, 63, "site", "source of the entry"},
        {"PORTS", rw, any, "bit set", "ports a burst of that group and source leaves by"},
        {"ENTRIES", ro, 0, "entries", "entries in the table"},
    }};

}  // namespace tributary
