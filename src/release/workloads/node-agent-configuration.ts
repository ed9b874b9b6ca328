import type { NodeAgentConfigurationSpec } from "../../model/node-agent-configuration.ts";
import type { EffectiveInstallation } from "../installation/effective-installation.ts";
import { NODE_HEALTH_PORT } from "./names.ts";

/** The fields of NodeAgentConfiguration `default` that follow from the Installation; the others are the administrator's. */
export function nodeAgentConfiguration({
  network,
  nodeMetricsPort,
}: EffectiveInstallation): NodeAgentConfigurationSpec {
  const { bgp, ipv4AddressDetection, ipv6AddressDetection } = network;
  return {
    bgp,
    healthEnabled: true,
    healthPort: NODE_HEALTH_PORT,
    ...(ipv4AddressDetection === undefined ? {} : { ipv4AddressDetection }),
    ...(ipv6AddressDetection === undefined ? {} : { ipv6AddressDetection }),
    prometheusMetricsEnabled: nodeMetricsPort !== undefined,
    ...(nodeMetricsPort === undefined ? {} : { prometheusMetricsPort: nodeMetricsPort }),
  };
}
