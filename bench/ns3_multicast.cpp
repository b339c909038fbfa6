// The scenario the network's speed is compared on, in ns-3: nine cities, metro links at 10 Gb/s, every site multicasts
// its update paced at 1 Gb/s in 8972-byte UDP payloads over shortest-path trees to the eight others.
//
//   bench_ns3_multicast UPDATE_BYTES      prints "wall_s packet_hops" of Simulator::Run; exit code 1 if packets are
//   lost
//
// ns-3 is given the least work that carries the traffic: IPv4 with static multicast routes, no queue discipline above
// the devices, checksums off (the default), one socket a city that counts what arrives.
#include <ns3/core-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>
#include <ns3/traffic-control-module.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace {

struct metro_link {
  unsigned a;
  unsigned b;
  unsigned latency_us;
};

// ams bar fra lax lon nyc seo sin tyo; metro_links.csv of doublezerofoundation/network-shapley (commit 35c205c).
constexpr unsigned cities = 9;
const std::vector<metro_link> links{{6, 8, 4500},  {8, 3, 57620}, {8, 7, 44950}, {7, 3, 121560},
                                    {7, 2, 52420}, {3, 5, 25720}, {5, 1, 55320}, {5, 4, 45600},
                                    {4, 0, 1450},  {4, 2, 4960},  {0, 2, 2110}};
constexpr std::uint32_t payload_bytes = 8972;
constexpr std::uint16_t udp_port = 9;
constexpr unsigned no_link = std::numeric_limits<unsigned>::max();

/// The link by which every city is reached on the shortest-latency tree from `source` (Bellman and Ford).
std::vector<unsigned> tree_from(unsigned source) {
  std::vector<unsigned> distance(cities, std::numeric_limits<unsigned>::max() / 2);
  std::vector<unsigned> by(cities, no_link);
  distance[source] = 0;
  const auto relax = [&](unsigned from, unsigned to, unsigned link) {
    if (distance[from] + links[link].latency_us >= distance[to]) return;
    distance[to] = distance[from] + links[link].latency_us;
    by[to] = link;
  };
  for (unsigned pass = 0; pass < cities; ++pass) {
    for (unsigned l = 0; l < links.size(); ++l) {
      relax(links[l].a, links[l].b, l);
      relax(links[l].b, links[l].a, l);
    }
  }
  return by;
}

/// Sends a packet on every branch at an even pace.
class paced_sender {
 public:
  paced_sender(std::vector<ns3::Ptr<ns3::Socket>> branches, std::uint64_t packets)
      : branches_(std::move(branches)), left_(packets) {
    ns3::Simulator::ScheduleNow(&paced_sender::send, this);
  }

 private:
  void send() {
    for (const ns3::Ptr<ns3::Socket>& branch : branches_) branch->Send(ns3::Create<ns3::Packet>(payload_bytes));
    if (--left_ > 0)
      ns3::Simulator::Schedule(ns3::NanoSeconds(std::uint64_t{payload_bytes} * 8), &paced_sender::send, this);
  }

  std::vector<ns3::Ptr<ns3::Socket>> branches_;
  std::uint64_t left_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t update_bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 16'000'000;
  const std::uint64_t packets = update_bytes / payload_bytes;

  ns3::NodeContainer nodes;
  nodes.Create(cities);
  ns3::InternetStackHelper stack;
  stack.SetIpv6StackInstall(false);
  stack.Install(nodes);

  ns3::PointToPointHelper line;
  line.SetDeviceAttribute("DataRate", ns3::StringValue("10Gbps"));
  line.SetDeviceAttribute("Mtu", ns3::UintegerValue(9000));
  line.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue("1000p"));
  ns3::Ipv4AddressHelper addresses;
  addresses.SetBase("10.0.0.0", "255.255.255.252");
  ns3::TrafficControlHelper traffic_control;
  std::vector<ns3::NetDeviceContainer> ends;
  for (const metro_link& link : links) {
    line.SetChannelAttribute("Delay", ns3::TimeValue(ns3::MicroSeconds(link.latency_us)));
    ends.push_back(line.Install(nodes.Get(link.a), nodes.Get(link.b)));
    addresses.Assign(ends.back());
    addresses.NewNetwork();
    traffic_control.Uninstall(ends.back());
  }
  // The device of a link at one of its cities.
  const auto device = [&](unsigned link, unsigned city) { return ends[link].Get(links[link].a == city ? 0 : 1); };

  std::uint64_t received = 0;
  std::vector<ns3::Ptr<ns3::Socket>> sinks;
  for (unsigned city = 0; city < cities; ++city) {
    sinks.push_back(ns3::Socket::CreateSocket(nodes.Get(city), ns3::UdpSocketFactory::GetTypeId()));
    sinks.back()->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), udp_port));
    sinks.back()->SetRecvCallback(ns3::Callback<void, ns3::Ptr<ns3::Socket>>([&received](ns3::Ptr<ns3::Socket> from) {
      while (from->Recv() != nullptr) ++received;
    }));
  }

  ns3::Ipv4StaticRoutingHelper routes;
  std::vector<std::unique_ptr<paced_sender>> senders;
  for (unsigned source = 0; source < cities; ++source) {
    const ns3::Ipv4Address group(("225.1.2." + std::to_string(source + 1)).c_str());
    const std::vector<unsigned> by = tree_from(source);
    std::vector<ns3::NetDeviceContainer> branches(cities);
    for (unsigned city = 0; city < cities; ++city) {
      if (city == source) continue;
      const unsigned parent = links[by[city]].a == city ? links[by[city]].b : links[by[city]].a;
      branches[parent].Add(device(by[city], parent));
    }
    for (unsigned city = 0; city < cities; ++city) {
      if (city == source || branches[city].GetN() == 0) continue;
      routes.AddMulticastRoute(nodes.Get(city), ns3::Ipv4Address::GetAny(), group, device(by[city], city),
                               branches[city]);
    }
    // What a node itself sends leaves by one interface: a socket a branch, bound to its device.
    std::vector<ns3::Ptr<ns3::Socket>> sockets;
    for (unsigned b = 0; b < branches[source].GetN(); ++b) {
      const ns3::Ptr<ns3::NetDevice> out = branches[source].Get(b);
      routes.SetDefaultMulticastRoute(nodes.Get(source), out);
      sockets.push_back(ns3::Socket::CreateSocket(nodes.Get(source), ns3::UdpSocketFactory::GetTypeId()));
      sockets.back()->Bind();
      sockets.back()->BindToNetDevice(out);
      sockets.back()->Connect(ns3::InetSocketAddress(group, udp_port));
    }
    senders.push_back(std::make_unique<paced_sender>(std::move(sockets), packets));
  }

  const auto before = std::chrono::steady_clock::now();
  ns3::Simulator::Run();
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  ns3::Simulator::Destroy();

  // Every city is a node of every tree, so a packet makes as many hops as it has receivers.
  const std::uint64_t hops = packets * cities * (cities - 1);
  if (received != hops) {
    std::fprintf(stderr, "ns-3 delivered %llu of %llu packets\n", static_cast<unsigned long long>(received),
                 static_cast<unsigned long long>(hops));
    return 1;
  }
  std::printf("%.6f %llu\n", wall, static_cast<unsigned long long>(hops));
  return 0;
}
