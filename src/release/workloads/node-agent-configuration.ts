import type { NodeAgentConfigurationSpec } from "../../model/node-agent-configuration.ts";
import type { EffectiveInstallation } from "../installation/effective-installation.ts";
import { NODE_HEALTH_PORT } from "./names.ts";

/** The fields of NodeAgentConfiguration `default` that follow from the Installation; the others are the administrator's. */
export function nodeAgentConfiguration({
  network,
  flows,
  nodeMetricsPort,
}: EffectiveInstallation): NodeAgentConfigurationSpec {
  const { bgp, ipv4AddressDetection, ipv6AddressDetection } = network;
  const { mode, deniedPerSecond, historyAge, historyMegabytes, logFile, flowsPerSecond } = flows;
  return {
    bgp,
    ...(deniedPerSecond === undefined ? {} : { flowDeniedPerSecond: deniedPerSecond }),
    ...(historyAge === undefined ? {} : { flowHistoryAge: historyAge }),
    ...(historyMegabytes === undefined ? {} : { flowHistoryMegabytes: historyMegabytes }),
    ...(logFile === undefined ? {} : { flowLogFile: logFile }),
    flows: mode,
    ...(flowsPerSecond === undefined ? {} : { flowsPerSecond }),
    healthEnabled: true,
    healthPort: NODE_HEALTH_PORT,
    ...(ipv4AddressDetection === undefined ? {} : { ipv4AddressDetection }),
    ...(ipv6AddressDetection === undefined ? {} : { ipv6AddressDetection }),
    prometheusMetricsEnabled: nodeMetricsPort !== undefined,
    ...(nodeMetricsPort === undefined ? {} : { prometheusMetricsPort: nodeMetricsPort }),
  };
}
