/**
 * The shape of an update, exactly: a field that this release does not know could be a criterion of a rule, and a rule without
 * one of its criteria matches too much. What the texts mean (addresses, networks, members) is checked where they are compiled.
 */
import * as v from "valibot";
import type { SidecarUpdate } from "./sidecar-state.ts";

const texts = v.array(v.string());
const LAST_PORT = 65_535;
const port = v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(LAST_PORT));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));

const ports = v.strictObject({
  ranges: v.array(v.strictTuple([port, port])),
  set: v.exactOptional(v.string()),
});

const peer = v.strictObject({
  nets: v.exactOptional(texts),
  notNets: v.exactOptional(texts),
  sets: v.exactOptional(texts),
  notSets: v.exactOptional(texts),
  ports: v.exactOptional(ports),
  notPorts: v.exactOptional(ports),
  identities: v.exactOptional(v.string()),
});

const path = v.union([v.strictObject({ exact: v.string() }), v.strictObject({ prefix: v.string() })]);

const http = v.strictObject({
  methods: v.exactOptional(texts),
  paths: v.exactOptional(v.array(path)),
});

const rule = v.strictObject({
  index: count,
  action: v.picklist(["Allow", "Deny", "Pass"]),
  family: v.exactOptional(v.picklist([4, 6])),
  source: peer,
  destination: peer,
  http: v.exactOptional(http),
});

const tier = v.strictObject({
  name: v.string(),
  defaultAction: v.picklist(["Deny", "Pass"]),
  policies: texts,
});

const policy = v.strictObject({ title: v.string(), rules: v.array(rule) });

const set = v.union([v.strictObject({ members: texts }), v.strictObject({ add: texts, remove: texts })]);

export const updateSchema = v.strictObject({
  type: v.literal("update"),
  revision: v.pipe(v.number(), v.integer(), v.minValue(1)),
  addresses: v.exactOptional(texts),
  evaluation: v.exactOptional(v.strictObject({ tiers: v.array(tier), profiles: v.array(rule) })),
  policies: v.exactOptional(v.record(v.string(), v.nullable(policy))),
  sets: v.exactOptional(v.record(v.string(), v.nullable(set))),
}) satisfies v.GenericSchema<SidecarUpdate>;
