#include "src/io/linux/link_settings.hh"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>

#include "src/io/linux/descriptor.hh"

namespace headrace::io {

namespace {

/// Bits from `first` to `last` are modes of one speed.
struct ModeRange {
  int first, last;
  uint32_t mbps;
  bool full_duplex = true;
};
constexpr ModeRange kModes[] = {
    {ETHTOOL_LINK_MODE_10baseT_Half_BIT, ETHTOOL_LINK_MODE_10baseT_Half_BIT, 10, false},
    {ETHTOOL_LINK_MODE_10baseT_Full_BIT, ETHTOOL_LINK_MODE_10baseT_Full_BIT, 10},
    {ETHTOOL_LINK_MODE_100baseT_Half_BIT, ETHTOOL_LINK_MODE_100baseT_Half_BIT, 100, false},
    {ETHTOOL_LINK_MODE_100baseT_Full_BIT, ETHTOOL_LINK_MODE_100baseT_Full_BIT, 100},
    {ETHTOOL_LINK_MODE_1000baseT_Half_BIT, ETHTOOL_LINK_MODE_1000baseT_Half_BIT, 1000, false},
    {ETHTOOL_LINK_MODE_1000baseT_Full_BIT, ETHTOOL_LINK_MODE_1000baseT_Full_BIT, 1000},
    {ETHTOOL_LINK_MODE_10000baseT_Full_BIT, ETHTOOL_LINK_MODE_10000baseT_Full_BIT, 10'000},
    {ETHTOOL_LINK_MODE_2500baseX_Full_BIT, ETHTOOL_LINK_MODE_2500baseX_Full_BIT, 2500},
    {ETHTOOL_LINK_MODE_1000baseKX_Full_BIT, ETHTOOL_LINK_MODE_1000baseKX_Full_BIT, 1000},
    {ETHTOOL_LINK_MODE_10000baseKX4_Full_BIT, ETHTOOL_LINK_MODE_10000baseR_FEC_BIT, 10'000},
    {ETHTOOL_LINK_MODE_20000baseMLD2_Full_BIT, ETHTOOL_LINK_MODE_20000baseKR2_Full_BIT, 20'000},
    {ETHTOOL_LINK_MODE_40000baseKR4_Full_BIT, ETHTOOL_LINK_MODE_40000baseLR4_Full_BIT, 40'000},
    {ETHTOOL_LINK_MODE_56000baseKR4_Full_BIT, ETHTOOL_LINK_MODE_56000baseLR4_Full_BIT, 56'000},
    {ETHTOOL_LINK_MODE_25000baseCR_Full_BIT, ETHTOOL_LINK_MODE_25000baseSR_Full_BIT, 25'000},
    {ETHTOOL_LINK_MODE_50000baseCR2_Full_BIT, ETHTOOL_LINK_MODE_50000baseKR2_Full_BIT, 50'000},
    {ETHTOOL_LINK_MODE_100000baseKR4_Full_BIT, ETHTOOL_LINK_MODE_100000baseLR4_ER4_Full_BIT, 100'000},
    {ETHTOOL_LINK_MODE_50000baseSR2_Full_BIT, ETHTOOL_LINK_MODE_50000baseSR2_Full_BIT, 50'000},
    {ETHTOOL_LINK_MODE_1000baseX_Full_BIT, ETHTOOL_LINK_MODE_1000baseX_Full_BIT, 1000},
    {ETHTOOL_LINK_MODE_10000baseCR_Full_BIT, ETHTOOL_LINK_MODE_10000baseER_Full_BIT, 10'000},
    {ETHTOOL_LINK_MODE_2500baseT_Full_BIT, ETHTOOL_LINK_MODE_2500baseT_Full_BIT, 2500},
    {ETHTOOL_LINK_MODE_5000baseT_Full_BIT, ETHTOOL_LINK_MODE_5000baseT_Full_BIT, 5000},
    {ETHTOOL_LINK_MODE_50000baseKR_Full_BIT, ETHTOOL_LINK_MODE_50000baseDR_Full_BIT, 50'000},
    {ETHTOOL_LINK_MODE_100000baseKR2_Full_BIT, ETHTOOL_LINK_MODE_100000baseDR2_Full_BIT, 100'000},
    {ETHTOOL_LINK_MODE_200000baseKR4_Full_BIT, ETHTOOL_LINK_MODE_200000baseCR4_Full_BIT, 200'000},
    {ETHTOOL_LINK_MODE_100baseT1_Full_BIT, ETHTOOL_LINK_MODE_100baseT1_Full_BIT, 100},
    {ETHTOOL_LINK_MODE_1000baseT1_Full_BIT, ETHTOOL_LINK_MODE_1000baseT1_Full_BIT, 1000},
    {ETHTOOL_LINK_MODE_400000baseKR8_Full_BIT, ETHTOOL_LINK_MODE_400000baseCR8_Full_BIT, 400'000},
    {ETHTOOL_LINK_MODE_100000baseKR_Full_BIT, ETHTOOL_LINK_MODE_100000baseDR_Full_BIT, 100'000},
    {ETHTOOL_LINK_MODE_200000baseKR2_Full_BIT, ETHTOOL_LINK_MODE_200000baseCR2_Full_BIT, 200'000},
    {ETHTOOL_LINK_MODE_400000baseKR4_Full_BIT, ETHTOOL_LINK_MODE_400000baseCR4_Full_BIT, 400'000},
    {ETHTOOL_LINK_MODE_100baseFX_Half_BIT, ETHTOOL_LINK_MODE_100baseFX_Half_BIT, 100, false},
    {ETHTOOL_LINK_MODE_100baseFX_Full_BIT, ETHTOOL_LINK_MODE_100baseFX_Full_BIT, 100},
};
constexpr std::pair<int, uint32_t> kOthers[] = {
    {ETHTOOL_LINK_MODE_TP_BIT, link_mode::kCopper},
    {ETHTOOL_LINK_MODE_FIBRE_BIT, link_mode::kFiber},
    {ETHTOOL_LINK_MODE_Autoneg_BIT, link_mode::kAutonegotiation},
    {ETHTOOL_LINK_MODE_Pause_BIT, link_mode::kPause},
    {ETHTOOL_LINK_MODE_Asym_Pause_BIT, link_mode::kAsymmetricPause},
};

/// The head, and room for three masks: supported, advertised, and what the peer advertises.
struct Settings {
  static constexpr size_t kMostWords = 127;
  alignas(ethtool_link_settings) uint32_t words[sizeof(ethtool_link_settings) / sizeof(uint32_t) + 3 * kMostWords] = {};

  ethtool_link_settings& head() { return *reinterpret_cast<ethtool_link_settings*>(words); }
  const uint32_t* masks() const { return words + sizeof(ethtool_link_settings) / sizeof(uint32_t); }
};

uint32_t modes_of(const uint32_t* mask, int words, uint32_t& most_speed) {
  const auto has = [&](int bit) { return bit / 32 < words && (mask[bit / 32] >> bit % 32 & 1) != 0; };
  uint32_t modes = 0;
  for (const ModeRange& range : kModes)
    for (int bit = range.first; bit <= range.last; ++bit)
      if (has(bit)) {
        modes |= link_mode::of_speed(range.mbps, range.full_duplex);
        most_speed = std::max(most_speed, range.mbps);
      }
  for (const auto& [bit, mode] : kOthers)
    if (has(bit)) modes |= mode;
  return modes;
}

bool ask_settings(int socket, const std::string& name, Settings& settings) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&settings);
  settings.head().cmd = ETHTOOL_GLINKSETTINGS;
  return ioctl(socket, SIOCETHTOOL, &request) == 0;
}

}  // namespace

void read_link_settings(DeviceState& state) {
  state.speed = state.most_speed = state.current = state.advertised = state.supported = state.peer = 0;
  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  Settings settings;
  // The first answer says how many words the masks have.
  if (!socket || !ask_settings(socket.get(), state.name, settings) || settings.head().link_mode_masks_nwords >= 0)
    return;
  const int words = -settings.head().link_mode_masks_nwords;
  settings = Settings();
  settings.head().link_mode_masks_nwords = static_cast<int8_t>(words);
  if (!ask_settings(socket.get(), state.name, settings) || settings.head().link_mode_masks_nwords != words) return;

  uint32_t unused = 0;
  const uint32_t* const mask = settings.masks();
  state.supported = modes_of(mask, words, state.most_speed);
  state.advertised = modes_of(mask + words, words, unused);
  state.peer = modes_of(mask + 2 * words, words, unused);
  state.speed = settings.head().speed == static_cast<uint32_t>(SPEED_UNKNOWN) ? 0 : settings.head().speed;
  state.most_speed = std::max(state.most_speed, state.speed);
  state.current = link_mode::of_speed(state.speed, settings.head().duplex != DUPLEX_HALF);
  if (settings.head().port == PORT_TP || settings.head().port == PORT_DA) state.current |= link_mode::kCopper;
  if (settings.head().port == PORT_FIBRE) state.current |= link_mode::kFiber;
  if (settings.head().autoneg == AUTONEG_ENABLE) state.current |= link_mode::kAutonegotiation;
}

}  // namespace headrace::io
