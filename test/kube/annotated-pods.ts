/**
 * Pods that ask for something by annotation, and how to tell whether they got it.
 * Each wish is made by a pod, by a Deployment, by a StatefulSet and by a static
 * pod, all at once, so every one of them has a number of its own.
 */
import { expect } from "bun:test";
import { identity } from "../../src/identity.ts";
import { type Families, poolsOf, type TestPool } from "../support/kube-families.ts";
import { addressesOf, type Pod } from "../support/kube-pods.ts";

export interface AddressRequest {
  readonly name: string;
  /** `number`: at most 9 different ones are in use at once. */
  annotations(families: Families, number: number): Readonly<Record<string, string>>;
  /** The addresses or, if any of a pool will do, its name. */
  expected(families: Families, number: number): readonly string[];
  /** Whether a pod cannot have it as long as another one does. */
  readonly isExclusive?: true;
  /** What else the pod must have. */
  check?(pod: Pod, number: number, inspect: Inspect): Promise<void>;
}

export interface Inspect {
  exec(pod: string, ...command: readonly string[]): Promise<string>;
  /** The spec of the pod's WorkloadEndpoint. */
  endpoint(pod: string): Promise<Readonly<Record<string, unknown>>>;
}

const key = (name: string) => `cni.${identity.apiGroup}/${name}`;
const usual = (families: Families) => poolsOf(families, "usual");
const names = (pools: readonly TestPool[]) => pools.map(({ name }) => name);

export const WISHES: readonly AddressRequest[] = [
  {
    name: "pools",
    annotations: (families) =>
      Object.fromEntries(
        poolsOf(families, "blue").map(({ family, name }) => [key(`${family}pools`), JSON.stringify([name])]),
      ),
    expected: (families) => names(poolsOf(families, "blue")),
  },
  {
    name: "addresses",
    annotations: (families, number) => ({ [key("ipAddrs")]: JSON.stringify(fixed(usual(families), number)) }),
    expected: (families, number) => fixed(usual(families), number),
    isExclusive: true,
  },
  {
    name: "foreign-addresses",
    annotations: (families, number) => ({ [key("ipAddrsNoIpam")]: JSON.stringify(foreign(families, number)) }),
    expected: foreign,
  },
  {
    name: "floating-addresses",
    annotations: (families, number) => ({
      [key("floatingIPs")]: JSON.stringify(fixed(poolsOf(families, "blue"), number)),
    }),
    expected: (families) => names(usual(families)),
    async check(pod, number, { endpoint }) {
      const { ipNATs } = await endpoint(pod.metadata.name);
      const pairs = addressesOf(pod).map((internalIP) => ({
        internalIP,
        externalIP: internalIP.includes(":") ? `fd79::f${number}` : `10.79.0.${240 + number}`,
      }));
      expect(ipNATs).toEqual(pairs);
    },
  },
  {
    name: "mac",
    annotations: (_, number) => ({ [key("hwAddr")]: `02:00:5e:00:00:0${number}` }),
    expected: (families) => names(usual(families)),
    async check(pod, number, { exec }) {
      const link = await exec(pod.metadata.name, "cat", "/sys/class/net/eth0/address");
      expect(link.trim()).toBe(`02:00:5e:00:00:0${number}`);
    },
  },
  {
    name: "sources",
    annotations: (families) => ({ [key("allowedSourcePrefixes")]: JSON.stringify(sources(families)) }),
    expected: (families) => names(usual(families)),
    async check(pod, _, { endpoint }) {
      const { allowSpoofedSourcePrefixes } = await endpoint(pod.metadata.name);
      const ofPod = ["198.51.100.0/24", "2001:db8:7::/64"].filter((prefix) =>
        addressesOf(pod).some((address) => address.includes(":") === prefix.includes(":")),
      );
      expect(allowSpoofedSourcePrefixes).toEqual(ofPod);
    },
  },
];

function sources(families: Families): readonly string[] {
  return usual(families).map(({ family }) => (family === "ipv4" ? "198.51.100.0/24" : "2001:db8:7::/64"));
}

/** Refused by the plugin: see docs/annotations.md. */
export const REFUSED = { [key("allowedSourcePrefixes")]: '["198.51.100.0"]' };

export function namespaceAnnotations(families: Families): readonly string[] {
  return poolsOf(families, "blue").map(({ family, name }) => `${key(`${family}pools`)}=${JSON.stringify([name])}`);
}

export function expectAddresses(pod: Pod, families: Families, expected: readonly string[]): void {
  const pools = poolsOf(families, "all");
  const found = addressesOf(pod).map((address, index) => {
    if (address === expected[index]) return address;
    return pools.find(({ prefix }) => address.startsWith(prefix))?.name ?? address;
  });
  expect(found).toEqual([...expected]);
  expect(pod.status.podIP).toBe(addressesOf(pod)[0] ?? "");
}

/** Near the end of a block, where no other pod gets its address. */
function fixed(pools: readonly TestPool[], number: number): readonly string[] {
  return pools.map(({ prefix, family }) => `${prefix}${family === "ipv4" ? 240 + number : `f${number}`}`);
}

function foreign(families: Families, number: number): readonly string[] {
  return usual(families).map(({ family }) => (family === "ipv4" ? `10.90.0.${number}` : `fd90::${number}`));
}
