#pragma once
/// \file
/// All that a shader's header includes. A shader is the part of an element that runs on a CPU or on a GPU: parameters
/// and one function, `shade`, that looks at one packet and chooses its next.
///
///     struct DecIPTTL : Shader<DecIPTTL> {
///       static constexpr Ports kPorts{"1/1-2"};
///       static constexpr auto kRegions = regions(ReadWrite{ip4::ttl}, ReadWrite{ip4::checksum});
///       Status configure(Args& args);
///       HEADRACE_SHADER Next shade(auto& p) const { ... }
///     };
///     HEADRACE_ELEMENT(DecIPTTL)
///
/// `p` is a packet view: get(field), set(field, value), and what CpuView in cpu_view.hh lists. A field that was not
/// declared in kRegions does not compile. A shader is trivially copyable: numbers, addresses, views of tables.
///
/// A packet without a header that the regions name never reaches `shade`: it is dropped and counted, unless the shader
/// declares `static constexpr bool kChecksHeaders = true` and looks itself (has_network_header()).
///
/// Optional: the constants that Shader has defaults for (shader_base.hh), and hooks: functions that the element calls
/// if the shader has them (shader_hooks.hh lists them all; no other public function compiles). `configure`,
/// `add_handlers` and `initialize` are those of Element. `escape` is the host body for slots that returned kEscape.
/// What a shader needs but may not contain (a table's owner, strings) goes into a class `Owner` named by `using Owner =
/// ...`: then these hooks may take it as a further argument, and `refresh(const Owner&)` is called before each batch to
/// take the current view of a table. `shade_batch` is a CPU body for a whole batch, for those that gain by it; a test
/// holds it to the answers of `shade`.
///
/// A shader that looks at payloads has `scan` and another `shade`: see payload_shader.hh.
///
/// For devices: `mirror` replaces addresses in the shader by those of a device's copies; a shader that has `refresh`
/// and no `mirror` stays on the host. `move` foresees where headers will be, `extent` which bytes of declared spans
/// this element looks at; both only save transfers. In `shade`, loads at offsets known only at run time (load8 and its
/// kin) come before the first set, store and count: when such a load meets bytes that have not travelled, the host does
/// the element from its beginning.

#include "headrace/device/lane_view.hh"
#include "headrace/payload_shader.hh"

#ifdef __CUDACC_RTC__
#define HEADRACE_ELEMENT(Name)
#define HEADRACE_ELEMENT_ALIAS(Alias, Name)
#else
#include "headrace/element.hh"
#include "headrace/shader_host.hh"
#endif
