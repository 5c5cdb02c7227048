export { type AgentAction, type AgentIdentity, AgentMachine } from "./agent-machine.ts";
export { type DriverPolicy, DriverMachine, classifyFailure } from "./driver-machine.ts";
export {
  type DriverRecord,
  type HostEntry,
  decodeDriverRecord,
  encodeDriverRecord,
} from "./driver-record.ts";
export { type Journal, type Leadership } from "./journal.ts";
export {
  type Endpoint,
  type Launch,
  type LaunchHost,
  type LaunchMember,
  type RankEnvironmentOptions,
  planLaunch,
  rankEnvironment,
} from "./launch.ts";
export {
  type AgentMessage,
  type AgentReport,
  type Answer,
  type DriverMessage,
  type Failure,
  type Join,
  type LogMessage,
  type MetricsMessage,
  type RunEnd,
  type StopOrder,
  type Welcome,
  describeFailure,
  protocolVersion,
} from "./message.ts";
export { parseAgentMessage, parseDriverMessage } from "./parse-message.ts";
export { type StopAgreement, takeBound } from "./stop-agreement.ts";
