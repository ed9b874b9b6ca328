/** A port of an endpoint that rules can name. */
import * as v from "valibot";
import type { Problem } from "./problem.ts";

const NOT_A_PORT = "is not a port; use a whole number from 0 to 65535";
const portNumber = v.pipe(v.number(), v.integer(NOT_A_PORT), v.minValue(0, NOT_A_PORT), v.maxValue(65_535, NOT_A_PORT));

export const endpointProtocol = v.union([v.string(), v.number()]);

/** A port of a host: always with a name, as it is there for rules alone. */
export const hostEndpointPort = v.object({ name: v.string(), protocol: endpointProtocol, port: portNumber });

export const endpointPort = v.object({
  name: v.exactOptional(v.string()),
  protocol: endpointProtocol,
  port: portNumber,
  hostPort: v.exactOptional(portNumber),
  hostIP: v.exactOptional(v.string()),
});

const PROTOCOLS_WITH_PORTS: ReadonlySet<string> = new Set(["tcp", "udp", "sctp", "6", "17", "132"]);

export function checkEndpointPorts(ports: readonly { readonly protocol: string | number }[] = []): readonly Problem[] {
  return ports.flatMap(({ protocol }, index): Problem[] => {
    if (PROTOCOLS_WITH_PORTS.has(String(protocol).toLowerCase())) return [];
    const message = "is not a protocol with ports; use TCP, UDP or SCTP";
    return [{ path: `spec.ports[${index}].protocol`, value: protocol, message }];
  });
}
