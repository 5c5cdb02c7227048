export { type AgentLink, connectAgent } from "./agent-link.ts";
