/** A port of an endpoint that rules can name. */
import * as v from "valibot";

const NOT_A_PORT = "is not a port; use a whole number from 0 to 65535";
const portNumber = v.pipe(v.number(), v.integer(NOT_A_PORT), v.minValue(0, NOT_A_PORT), v.maxValue(65_535, NOT_A_PORT));

export const endpointPort = v.object({
  name: v.exactOptional(v.string()),
  protocol: v.union([v.string(), v.number()]),
  port: portNumber,
  hostPort: v.exactOptional(portNumber),
  hostIP: v.exactOptional(v.string()),
});
