/**
 * The status of an endpoint appears only after its rules: when its file is written, the kernel leads packets of its
 * interface to its policies. Later the rules may go before the file does: nobody waits for the file then.
 *
 * The interface of a pod has the same name for each of its containers, and the agent only looks whether it is up. So while
 * the ADD of the next container has recorded its endpoint, and has not replaced the link yet, the new status appears with
 * the link of the former container. That is harmless: the rules are those of the new endpoint, the kernel finds them by
 * the name of the interface, so they hold for the new link from its first packet on, and whoever waits for this status
 * is the ADD that replaces the link before it waits. A container that has started is on a link of its own.
 *
 * What all this is for: a container whose ADD waits for its rules does not start without them.
 */
import { identity } from "../../src/identity.ts";
import { interfaceValue } from "../../src/linux/nftables/value.ts";
import { isObject } from "../../src/model/shape.ts";
import { FROM_WORKLOADS, TO_WORKLOADS } from "../../src/policy/render/base-chains.ts";
import type { ModelLink } from "../kernel/model.ts";
import type { NetfilterState } from "../kernel/nftables/state.ts";
import type { Invariant, World, WorldHost, WorldNode } from "./invariant.ts";

/** The agent looks that often whether its rules are still there. */
const REPAIR_MILLISECONDS = 180_000;

export function statusOnlyAfterRules(): Invariant {
  /** By node: the files that were seen, with their text. */
  const seen = new Map<string, ReadonlyMap<string, string>>();
  return {
    name: "endpoint status only after the rules",
    when: "after each step",
    check(world) {
      return Array.from(world.nodes.values()).flatMap((node) => {
        const { name, host } = node;
        if (host === undefined) return [];
        const before = seen.get(name) ?? new Map();
        const written = [...host.statusFiles].filter(([file, text]) => before.get(file) !== text);
        if (written.length === 0 && before.size === host.statusFiles.size) return [];
        seen.set(name, new Map(host.statusFiles));
        if (isTampered(host, world)) return [];
        return written.flatMap(([file, text]) =>
          file.startsWith(".") ? [] : problemsOf(node, host, text).map((problem) => `${name}: "${file}" ${problem}`),
        );
      });
    },
  };
}

function problemsOf({ attachments }: WorldNode, { root }: WorldHost, text: string): readonly string[] {
  const status: unknown = JSON.parse(text);
  const { ifaceName, containerID } = isObject(status) ? status : {};
  if (typeof ifaceName !== "string" || typeof containerID !== "string") return ["is not the status of an endpoint"];
  const link = [...root.links.values()].find(({ name }) => name === ifaceName);
  if (link === undefined) return [`was written, but there is no interface "${ifaceName}"`];
  const isOfAnother = attachments.get(containerID)?.state === "attached" && containerOf(link) !== containerID;
  return [
    ...(isOfAnother ? [`is of container "${containerID}", but "${ifaceName}" is of "${link.alias}"`] : []),
    ...mapsWithout(root.nftables, ifaceName).map(
      (map) => `was written, but the map "${map}" does not have "${ifaceName}"`,
    ),
  ];
}

export function startsWithRules(): Invariant {
  /** Since when the ADD of a container is in progress. */
  const adding = new Map<string, number>();
  return {
    name: "a container starts with its rules",
    when: "after each step",
    check(world) {
      return Array.from(world.nodes.values()).flatMap(({ name, attachments, host }) => {
        const { policySetupMilliseconds = 0 } = host ?? {};
        if (host === undefined || policySetupMilliseconds === 0) return [];
        return Array.from(attachments.values()).flatMap(({ containerId, state }) => {
          const since = adding.get(containerId);
          if (state === "adding") {
            if (since === undefined) adding.set(containerId, world.now);
            return [];
          }
          adding.delete(containerId);
          if (state !== "attached" || since === undefined) return [];
          // Who has waited that long starts without them, by design: nothing reaches it until it has them.
          if (world.now - since >= policySetupMilliseconds || isTampered(host, world)) return [];
          return startProblems(host, containerId).map((problem) => `${name}: container ${containerId} ${problem}`);
        });
      });
    },
  };
}

function startProblems({ root }: WorldHost, containerId: string): readonly string[] {
  const link = [...root.links.values()].find((each) => containerOf(each) === containerId);
  if (link === undefined) return ["starts, but has no interface"];
  return mapsWithout(root.nftables, link.name).map(
    (map) => `starts, but the map "${map}" does not have "${link.name}"`,
  );
}

function isTampered({ tamperedAt = Number.NEGATIVE_INFINITY }: WorldHost, { now }: World): boolean {
  return now - tamperedAt < REPAIR_MILLISECONDS;
}

/** Its alias is `NETWORK/CONTAINER/INTERFACE`. */
function containerOf({ alias }: ModelLink): string | undefined {
  return alias?.split("/")[1];
}

function mapsWithout(ruleset: NetfilterState, interfaceName: string): readonly string[] {
  const key = interfaceValue(interfaceName).toHex();
  return [FROM_WORKLOADS, TO_WORKLOADS].filter((map) => !interfacesIn(ruleset, map).has(key));
}

/** The keys of a map of the policy table. */
export function interfacesIn({ tables }: NetfilterState, map: string): ReadonlySet<string> {
  const elements = tables.get(`inet ${identity.policyTable}`)?.sets.get(map)?.elements.values() ?? [];
  return new Set(Array.from(elements, ({ key }) => key.toHex()));
}
