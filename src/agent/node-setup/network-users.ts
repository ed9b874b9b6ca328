/**
 * Which containers of this host use the network, for whoever removes it: those with a link of our plugin, and those of
 * other plugins whose ports our portmap publishes. Found without the datastore, which only gives them their names.
 */
import { isSameContainer, ownerOf } from "../../chained/portmap/port-owner.ts";
import type { RunningOwners } from "../../chained/portmap/running-owners.ts";
import { isJsonObject } from "../../cni/json.ts";
import { shortContainerId } from "../../cni/names.ts";
import { counted, listed } from "../../counted.ts";
import type { Entry } from "../../datastore/datastore.ts";
import { identity } from "../../identity.ts";
import type { Link } from "../../linux/rtnetlink/link.ts";
import { parseJson } from "../../parse-json.ts";
import { quoted } from "../../quote.ts";

export type NetworkUser =
  /** The host's end of a link of our plugin; the ID is empty if the link does not say it. */
  | { readonly kind: "link"; readonly link: string; readonly containerId: string }
  /** Host ports of a container that another plugin connected, by the name in their record. */
  | { readonly kind: "ports"; readonly name: string }
  /** Host ports of whom is not known. */
  | { readonly kind: "unreadable record"; readonly path: string };

/** One user per container. */
export function networkUsers(links: readonly Link[], { owners, unreadable }: RunningOwners): readonly NetworkUser[] {
  const own = links.filter(({ name }) => name.startsWith(identity.interfacePrefix));
  const linked = own
    .map(({ name, alias = "" }) => ({ kind: "link" as const, link: name, containerId: containerIn(alias) }))
    .filter(
      ({ containerId }, index, all) =>
        containerId === "" || all.findIndex((other) => other.containerId === containerId) === index,
    );
  const linkedIds = linked.map(({ containerId }) => ownerOf("", { containerId, ifname: "" }).id);
  const published = owners
    .map(({ owner }) => owner)
    .filter(({ id }) => !linkedIds.some((each) => isSameContainer(each, id)))
    .filter(({ id }, index, all) => all.findIndex((other) => isSameContainer(other.id, id)) === index);
  return [
    ...linked,
    ...published.map(({ name }) => ({ kind: "ports" as const, name: containerNameIn(name) })),
    ...unreadable.map((path) => ({ kind: "unreadable record" as const, path })),
  ];
}

/** The alias of a link is `network/ID/interface`: none of the three contains a slash. */
function containerIn(alias: string): string {
  const [, containerId = "", ...others] = alias.split("/");
  return others.length === 1 ? containerId : "";
}

/** Of an owner's name: a pod's contains a slash. */
function containerNameIn(name: string): string {
  return shortContainerId(name.split("/").slice(1, -1).join("/")) || name;
}

const MOST_NAMES = 10;

/** `endpoints`: those that could be read. "2 containers use it: db, web". */
export function describeUsers(users: readonly NetworkUser[], endpoints: readonly Entry[]): string {
  const known = endpoints.flatMap((entry) => endpointNameIn(entry) ?? []);
  const names = users.map((user) => nameOf(user, known)).toSorted((left, right) => left.localeCompare(right, "en"));
  const verb = users.length === 1 ? "uses" : "use";
  return `${counted(users.length, "container")} ${verb} it: ${listed(names, MOST_NAMES)}`;
}

interface EndpointName {
  readonly name: string;
  readonly containerId: unknown;
  readonly link: unknown;
}

/** `undefined` if it has no name for people, or is not an endpoint. */
function endpointNameIn({ value }: Entry): EndpointName | undefined {
  const { metadata, spec } = objectIn(value);
  if (!isJsonObject(metadata) || !isJsonObject(spec)) return undefined;
  const { pod, workload, containerID: containerId, interfaceName: link } = spec;
  const { namespace } = metadata;
  if (typeof pod === "string") return { name: `${namespace}/${pod}`, containerId, link };
  return typeof workload === "string" ? { name: workload, containerId, link } : undefined;
}

function objectIn(text: string): Readonly<Record<string, unknown>> {
  try {
    const value = parseJson(text);
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function nameOf(user: NetworkUser, known: readonly EndpointName[]): string {
  switch (user.kind) {
    case "ports":
      return user.name;
    case "unreadable record":
      return `one whose record ${quoted(user.path)} cannot be read`;
    case "link": {
      const { containerId, link } = user;
      const endpoint = known.find(
        (each) => (containerId !== "" && each.containerId === containerId) || each.link === link,
      );
      return endpoint?.name ?? (shortContainerId(containerId) || link);
    }
  }
}
