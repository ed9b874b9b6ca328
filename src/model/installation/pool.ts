/** A pool as an Installation declares it. */

import * as v from "valibot";
import { durationField } from "../duration-field.ts";
import { cooldownField, prefixField, selectorField } from "../fields.ts";
import { ENCAPSULATIONS } from "./choices.ts";
import { switchField } from "./fields.ts";

/** The rule of the CRD has the same one. */
export const IPIP_OF_IPV6 = "is not supported for IPv6; use VXLANCrossSubnet, VXLAN or None";

/** As upstream: more pools than this are applied as IPPool resources. */
export const MOST_POOLS = 25;
export const TOO_MANY_POOLS = `are too many pools; use at most ${MOST_POOLS}, and IPPool resources for further ones`;

const NOT_A_NAME =
  'is not a valid name; use lower-case letters, digits, "-" and ".", beginning and ending with a letter or digit, at most 253 characters';

export const declaredPool = v.object({
  name: v.exactOptional(
    v.pipe(
      v.string(),
      v.regex(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/, NOT_A_NAME),
      v.maxLength(253, NOT_A_NAME),
    ),
  ),
  cidr: prefixField,
  encapsulation: v.exactOptional(v.picklist(ENCAPSULATIONS)),
  natOutgoing: v.exactOptional(switchField),
  nodeSelector: v.exactOptional(selectorField),
  namespaceSelector: v.exactOptional(selectorField),
  blockSize: v.exactOptional(v.pipe(v.number(), v.integer("must be a whole number; use a prefix length"))),
  disableBGPExport: v.exactOptional(v.boolean()),
  disableNewAllocations: v.exactOptional(v.boolean()),
  allowedUses: v.exactOptional(v.array(v.picklist(["Workload", "Tunnel"]))),
  cooldownSeconds: v.exactOptional(cooldownField),
  keepAddresses: v.exactOptional(v.boolean()),
  keepFor: v.exactOptional(durationField("24h")),
});

export type DeclaredPool = Readonly<v.InferOutput<typeof declaredPool>>;
export type Encapsulation = (typeof ENCAPSULATIONS)[number];
