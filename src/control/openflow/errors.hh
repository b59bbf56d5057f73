#pragma once
/// \file
/// The errors of OpenFlow 1.0.0 and 1.3.5.

#include <cstdint>
#include <span>
#include <string>

#include "control/openflow/definitions.hh"

namespace headrace::openflow {

/// Errors by what they say, in the order of error_definitions(). They carry the names of 1.3.
enum class ErrorCode : uint8_t {
  kNone,
  kHelloIncompatible,
  kHelloEperm,
  kRequestBadVersion,
  kRequestBadType,
  kRequestBadMultipart,
  kRequestBadExperimenter,
  kRequestBadExpType,
  kRequestEperm,
  kRequestBadLen,
  kRequestBufferEmpty,
  kRequestBufferUnknown,
  kRequestBadTableId,
  kRequestIsSlave,
  kRequestBadPort,
  kRequestBadPacket,
  kRequestMultipartBufferOverflow,
  kActionBadType,
  kActionBadLen,
  kActionBadExperimenter,
  kActionBadExpType,
  kActionBadOutPort,
  kActionBadArgument,
  kActionEperm,
  kActionTooMany,
  kActionBadQueue,
  kActionBadOutGroup,
  kActionMatchInconsistent,
  kActionUnsupportedOrder,
  kActionBadTag,
  kActionBadSetType,
  kActionBadSetLen,
  kActionBadSetArgument,
  kInstructionUnknownInst,
  kInstructionUnsupInst,
  kInstructionBadTableId,
  kInstructionUnsupMetadata,
  kInstructionUnsupMetadataMask,
  kInstructionBadExperimenter,
  kInstructionBadExpType,
  kInstructionBadLen,
  kInstructionEperm,
  kMatchBadType,
  kMatchBadLen,
  kMatchBadTag,
  kMatchBadDlAddrMask,
  kMatchBadNwAddrMask,
  kMatchBadWildcards,
  kMatchBadField,
  kMatchBadValue,
  kMatchBadMask,
  kMatchBadPrereq,
  kMatchDupField,
  kMatchEperm,
  kFlowModUnknown,
  kFlowModTableFull,
  kFlowModBadTableId,
  kFlowModOverlap,
  kFlowModEperm,
  kFlowModBadTimeout,
  kFlowModBadCommand,
  kFlowModBadFlags,
  kGroupModGroupExists,
  kGroupModInvalidGroup,
  kGroupModWeightUnsupported,
  kGroupModOutOfGroups,
  kGroupModOutOfBuckets,
  kGroupModChainingUnsupported,
  kGroupModWatchUnsupported,
  kGroupModLoop,
  kGroupModUnknownGroup,
  kGroupModChainedGroup,
  kGroupModBadType,
  kGroupModBadCommand,
  kGroupModBadBucket,
  kGroupModBadWatch,
  kGroupModEperm,
  kPortModBadPort,
  kPortModBadHwAddr,
  kPortModBadConfig,
  kPortModBadAdvertise,
  kPortModEperm,
  kTableModBadTable,
  kTableModBadConfig,
  kTableModEperm,
  kQueueBadPort,
  kQueueBadQueue,
  kQueueEperm,
  kConfigBadFlags,
  kConfigBadLen,
  kConfigEperm,
  kRoleStale,
  kRoleUnsup,
  kRoleBadRole,
  kMeterModUnknown,
  kMeterModMeterExists,
  kMeterModInvalidMeter,
  kMeterModUnknownMeter,
  kMeterModBadCommand,
  kMeterModBadFlags,
  kMeterModBadRate,
  kMeterModBadBurst,
  kMeterModBadBand,
  kMeterModBadBandValue,
  kMeterModOutOfMeters,
  kMeterModOutOfBands,
  kTableFeaturesBadTable,
  kTableFeaturesBadMetadata,
  kTableFeaturesBadType,
  kTableFeaturesBadLen,
  kTableFeaturesBadArgument,
  kTableFeaturesEperm,
};

/// Type and code of an error in each version. What 1.0 cannot say becomes the nearest that it can, without a name; what
/// only messages of 1.3 can cause has -1 there.
struct ErrorDefinition {
  const char* name_1_3;
  int32_t type_1_3;
  int32_t code_1_3;
  const char* name_1_0;
  int32_t type_1_0;
  int32_t code_1_0;

  constexpr int32_t type(Version version) const { return version == Version::k1_0 ? type_1_0 : type_1_3; }
  constexpr int32_t code(Version version) const { return version == Version::k1_0 ? code_1_0 : code_1_3; }
};

/// The types of errors, OFPET_*.
std::span<const Definition> error_types();
/// All errors; the first one is that of ErrorCode 1.
std::span<const ErrorDefinition> error_definitions();
/// Of any error but kNone.
const ErrorDefinition& definition_of(ErrorCode code);
/// "BAD_REQUEST/BAD_LEN": type and code by their names in the version, or as numbers. For logs.
std::string error_text(Version version, uint16_t type, uint16_t code);

}  // namespace headrace::openflow
