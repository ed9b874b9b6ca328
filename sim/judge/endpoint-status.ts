/**
 * The status of an endpoint appears only after its rules: when its file is written, the kernel leads packets of its
 * interface to its policies, and the interface is that of the container. Later the rules may go before the file does:
 * nobody waits for the file then.
 */
import { identity } from "../../src/identity.ts";
import { interfaceValue } from "../../src/linux/nftables/value.ts";
import { isObject } from "../../src/model/shape.ts";
import { FROM_WORKLOADS, TO_WORKLOADS } from "../../src/policy/render/base-chains.ts";
import type { NetfilterState } from "../kernel/nftables/state.ts";
import type { Invariant, WorldHost } from "./invariant.ts";

/** The agent looks that often whether its rules are still there. */
const REPAIR_MILLISECONDS = 180_000;

export function statusOnlyAfterRules(): Invariant {
  /** By node: the files that were seen, with their text. */
  const seen = new Map<string, ReadonlyMap<string, string>>();
  return {
    name: "endpoint status only after the rules",
    when: "after each step",
    check(world) {
      return Array.from(world.nodes.values()).flatMap(({ name, host }) => {
        if (host === undefined) return [];
        const before = seen.get(name) ?? new Map();
        const written = [...host.statusFiles].filter(([file, text]) => before.get(file) !== text);
        if (written.length === 0 && before.size === host.statusFiles.size) return [];
        seen.set(name, new Map(host.statusFiles));
        if (world.now - (host.tamperedAt ?? Number.NEGATIVE_INFINITY) < REPAIR_MILLISECONDS) return [];
        return written.flatMap(([file, text]) =>
          file.startsWith(".") ? [] : problemsOf(host, text).map((problem) => `${name}: "${file}" ${problem}`),
        );
      });
    },
  };
}

function problemsOf({ root }: WorldHost, text: string): readonly string[] {
  const status: unknown = JSON.parse(text);
  const { ifaceName, containerID } = isObject(status) ? status : {};
  if (typeof ifaceName !== "string" || typeof containerID !== "string") return ["is not the status of an endpoint"];
  const link = [...root.links.values()].find(({ name }) => name === ifaceName);
  if (link === undefined) return [`was written, but there is no interface "${ifaceName}"`];
  // The next container of a pod has the same link, and waits for a status of its own.
  return [
    ...[FROM_WORKLOADS, TO_WORKLOADS]
      .filter((map) => !interfacesIn(root.nftables, map).has(interfaceValue(ifaceName).toHex()))
      .map((map) => `was written, but the map "${map}" does not have "${ifaceName}"`),
  ];
}

/** The keys of a map of the policy table. */
export function interfacesIn({ tables }: NetfilterState, map: string): ReadonlySet<string> {
  const elements = tables.get(`inet ${identity.policyTable}`)?.sets.get(map)?.elements.values() ?? [];
  return new Set(Array.from(elements, ({ key }) => key.toHex()));
}
