/**
 * The wire shapes of a result, decoded. `null`, the empty string, and zero
 * where it means nothing, count as absent, as other tools write them.
 */
import * as v from "valibot";
import { PluginError } from "../errors.ts";
import { isJsonObject } from "./json.ts";
import type { CniResult } from "./result.ts";
import type { ShapeFamily } from "./version.ts";

/** An address, with or without prefix length. Whether it can be used is for the user of the result to find out. */
const ADDRESS = /^[0-9a-fA-F.:]+$/;
const PREFIXED_ADDRESS = /^[0-9a-fA-F.:]+\/[0-9]{1,3}$/;

const text = v.pipe(
  v.nullish(v.string()),
  v.transform((value) => value || undefined),
);
const integer = v.pipe(
  v.nullish(v.pipe(v.number(), v.safeInteger())),
  v.transform((value) => value ?? undefined),
);
const count = v.pipe(
  integer,
  v.transform((value) => value || undefined),
);
const prefixed = v.pipe(v.string(), v.regex(PREFIXED_ADDRESS, "must be an address with a prefix length"));
const gateway = v.pipe(
  v.nullish(v.union([v.literal(""), v.pipe(v.string(), v.regex(ADDRESS, "must be an address"))])),
  v.transform((value) => value || undefined),
);

/** Absent and `null` are an empty list. */
function listOf<Item>(item: v.GenericSchema<unknown, Item>) {
  return v.nullish(v.array(item), []);
}

const link = v.pipe(
  v.object({ name: v.string(), mac: text, sandbox: text, mtu: count, socketPath: text, pciID: text }),
  v.transform(({ pciID, ...rest }) => ({ ...rest, pciId: pciID })),
);

const ip = v.object({ address: prefixed, gateway, interface: integer });

const route = v.pipe(
  v.object({ dst: prefixed, gw: gateway, mtu: count, advmss: count, priority: count, table: integer, scope: integer }),
  v.transform(({ dst, gw, ...rest }) => ({ destination: dst, gateway: gw, ...rest })),
);

const dns = v.nullish(
  v.object({ nameservers: listOf(v.string()), domain: text, search: listOf(v.string()), options: listOf(v.string()) }),
  {},
);

const lists = v.object({ interfaces: listOf(link), ips: listOf(ip), routes: listOf(route), dns });

const family = v.nullish(v.object({ ip: prefixed, gateway, routes: listOf(route) }));

const families = v.pipe(
  v.object({ ip4: family, ip6: family, dns }),
  v.transform(({ ip4, ip6, dns }): CniResult => {
    const present = [ip4, ip6].filter((one) => one !== undefined && one !== null);
    return {
      interfaces: [],
      ips: present.map((one) => ({ address: one.ip, gateway: one.gateway })),
      routes: present.flatMap((one) => one.routes),
      dns,
    };
  }),
);

export function decodeResultShape(value: unknown, shape: ShapeFamily, subject: string): CniResult {
  if (!isJsonObject(value)) throw new PluginError("decode-failure", `Cannot read ${subject}: it is not an object`);
  const decoded = shape === "ip4-ip6" ? v.safeParse(families, value) : v.safeParse(lists, value);
  if (decoded.success) return decoded.output;

  const problems = decoded.issues.map((issue) => {
    const place = v.getDotPath(issue);
    return place === null ? issue.message : `${place}: ${issue.message}`;
  });
  throw new PluginError("decode-failure", `Cannot read ${subject}: ${problems.join("; ")}`);
}
