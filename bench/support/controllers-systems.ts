/** The two systems of the benchmark of controllers: how each is started, and what it calls its records. */
import { join } from "node:path";
import { identity } from "../../src/identity.ts";
import { resourceKey, resourcesPrefix } from "../../src/model/keys.ts";
import type { EtcdRecord } from "./etcd-records.ts";

export interface ControllersSystem {
  readonly name: string;
  readonly command: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  record(record: EtcdRecord): EtcdRecord;
  /** Of the copy of an orchestrator's policy. */
  policyKey(namespace: string, name: string): string;
  readonly policiesPrefix: string;
}

const GROUP = "projectcalico.org";

export function ownControllers(folder: string): ControllersSystem {
  return {
    name: identity.product,
    command: [join(folder, identity.controllers)],
    environment: { HEALTH_ENABLED: "false" },
    record: (record) => record,
    policyKey: (namespace, name) => resourceKey("networkpolicies", { namespace, name: `knp.default.${name}` }),
    policiesPrefix: resourcesPrefix("networkpolicies"),
  };
}

/** Its controllers write the same copies under its names. */
export function peerControllers(program: string, directory: string): ControllersSystem {
  const renamedKey = (key: string) => key.replace(identity.etcdRoot, "/calico").replace(identity.apiGroup, GROUP);
  const own = ownControllers("");
  return {
    name: "Calico 3.31.0",
    command: [program, `--status-file=${join(directory, "status.json")}`],
    environment: { LOG_LEVEL: "warning", ENABLED_CONTROLLERS: "policy,namespace,serviceaccount,workloadendpoint,node" },
    record: ({ key, value }) => ({ key: renamedKey(key), value: dated(value.replaceAll(identity.apiGroup, GROUP)) }),
    policyKey: (namespace, name) => renamedKey(own.policyKey(namespace, name)),
    policiesPrefix: renamedKey(own.policiesPrefix),
  };
}

/** It refuses to update a record without a time. */
function dated(value: string): string {
  const { metadata, ...more } = JSON.parse(value);
  const created = { uid: crypto.randomUUID(), creationTimestamp: "2026-01-02T03:04:05Z" };
  return JSON.stringify({ ...more, metadata: { ...metadata, ...created } });
}
