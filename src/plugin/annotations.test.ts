import { describe, expect, test } from "bun:test";
import { address } from "../../test/support/ip.ts";
import { thrownBy } from "../../test/support/thrown-by.ts";
import { identity } from "../identity.ts";
import { formatAddress } from "../ip/address.ts";
import { formatPrefix } from "../ip/prefix.ts";
import { MOST_RECORDED_VALUES, mostRecordedValues } from "../model/recorded-annotations.ts";
import {
  type AnnotatedPod,
  type AnnotationLimits,
  type AnnotationName,
  type AnnotationRequests,
  annotationKey,
  annotationRequests,
  uselessAnnotations,
} from "./annotations.ts";

type Values = Partial<Record<AnnotationName, string>>;

const keyed = (values: Values) =>
  Object.fromEntries(Object.entries(values).map(([name, text]) => [annotationKey(name as AnnotationName), text]));
const podWith = (pod: Values, namespace: Values = {}): AnnotatedPod => ({
  namespace: "shop",
  name: "web",
  annotations: keyed(pod),
  namespaceAnnotations: keyed(namespace),
});
const ALL_ON: AnnotationLimits = {
  features: { ipAddrsNoIpam: true, floatingIps: true, allowedSourcePrefixes: true },
  ipamType: identity.ipamType,
  mostRecordedValues: MOST_RECORDED_VALUES,
};
const requests = (pod: Values, namespace: Values = {}) => annotationRequests(podWith(pod, namespace), ALL_ON);

describe("annotationRequests()", () => {
  test("requests nothing without annotations", () => {
    expect(requests({})).toEqual({ pools: {} });
  });

  test("decodes each annotation, and says where it is", () => {
    const { pools, addresses, floatingAddresses, mac } = requests({
      ipv4pools: '["blue", "10.1.0.0/16"]',
      ipv6pools: '["fd00::/64"]',
      ipAddrs: '["10.0.0.5", "fd00::5"]',
      floatingIPs: '["192.0.2.8", "192.0.2.9", "192.0.2.8"]',
      hwAddr: "02:42:AC:11:00:02",
    });

    expect(pools[4]).toEqual({
      pools: ["blue", "10.1.0.0/16"],
      place: `annotation "${annotationKey("ipv4pools")}" of pod "shop/web"`,
    });
    expect(pools[6]?.pools).toEqual(["fd00::/64"]);
    expect(addresses).toEqual({
      value: [address("10.0.0.5"), address("fd00::5")],
      place: `annotation "${annotationKey("ipAddrs")}" of pod "shop/web"`,
    });
    expect(floatingAddresses?.value.map(formatAddress)).toEqual(["192.0.2.8", "192.0.2.9"]);
    expect(mac?.value).toEqual(Uint8Array.of(0x02, 0x42, 0xac, 0x11, 0, 2));
    expect(requests({ ipAddrsNoIpam: '["10.0.0.5"]' }).addressesWithoutIpam?.value).toEqual([address("10.0.0.5")]);
  });

  test("keeps addresses as the pod says, else its namespace, and refuses any other word", () => {
    const asked = ({ keepAddresses, keepFor }: AnnotationRequests) => [keepAddresses?.value, keepFor?.value.seconds];

    expect(asked(requests({ keepAddresses: "true", keepFor: "1.5h" }))).toEqual([true, 5400]);
    expect(asked(requests({ keepAddresses: "false" }, { keepAddresses: "true", keepFor: "0s" }))).toEqual([false, 0]);
    expect(asked(requests({}, { keepAddresses: "true" }))).toEqual([true, undefined]);
    for (const wrong of ["True", "yes", '["true"]', ""]) {
      expect(() => requests({ keepAddresses: wrong })).toThrow('neither "true" nor "false"');
    }
    for (const wrong of ["1d", "-1h", "soon", ""]) {
      expect(() => requests({ keepFor: wrong })).toThrow("not a duration");
    }
  });

  test("uses the namespace's pools if the pod has no such annotation, each family on its own", () => {
    const { pools } = requests({ ipv4pools: '["of-pod"]' }, { ipv4pools: '["of-namespace"]', ipv6pools: '["shared"]' });

    expect(pools[4]?.pools).toEqual(["of-pod"]);
    expect(pools[6]?.pools).toEqual(["shared"]);
    expect(pools[6]?.place).toContain('of namespace "shop" (pod "shop/web")');
  });

  test("does not look at a namespace's list that the pod's overrides", () => {
    expect(requests({ ipv4pools: '["blue"]' }, { ipv4pools: "not a list" }).pools[4]?.pools).toEqual(["blue"]);
  });

  test("decodes families in any order, of the pod before its namespace's", () => {
    expect(requests({ ipFamilies: '["IPv6", "IPv4", "IPv6"]' }).families?.value).toEqual([4, 6]);
    expect(requests({ ipFamilies: '["IPv6"]' }, { ipFamilies: '["IPv4"]' }).families).toEqual({
      value: [6],
      place: `annotation "${annotationKey("ipFamilies")}" of pod "shop/web"`,
    });
    expect(requests({}, { ipFamilies: '["IPv4"]' }).families?.place).toContain('of namespace "shop"');
  });

  test.each<readonly [Values, Values]>([
    [{ ipAddrs: '["10.0.0.5", "fd00::5"]', ipFamilies: '["IPv4"]' }, {}],
    [{ ipAddrsNoIpam: '["fd00::5"]' }, { ipFamilies: '["IPv4"]' }],
  ])("refuses addresses of a family that is not listed: %j, namespace %j", (pod, namespace) => {
    const { kind, message, details } = thrownBy(() => requests(pod, namespace));

    expect(kind).toBe("annotation-invalid");
    expect(message).toMatch(/ipAddrs.*"fd00::5" is of IPv6, which annotation ".*ipFamilies" of .* does not list/);
    expect(details).toContain('add "IPv6" to that list');
  });

  test("accepts addresses of one of the families that are listed: they are all that the pod gets", () => {
    expect(requests({ ipAddrs: '["fd00::5"]', ipFamilies: '["IPv4", "IPv6"]' }).addresses?.value).toHaveLength(1);
  });

  test("decodes the name of a list of addresses, of the pod alone", () => {
    expect(requests({ ipAddrsFrom: "web" }, { ipAddrsFrom: "other" }).list).toEqual({
      value: "web",
      place: `annotation "${annotationKey("ipAddrsFrom")}" of pod "shop/web"`,
    });
    expect(requests({}, { ipAddrsFrom: "other" }).list).toBeUndefined();
  });

  test.each<readonly [Values]>([
    [{ ipAddrs: '["10.0.0.5"]', ipAddrsFrom: "web" }],
    [{ ipAddrsFrom: "web", ipAddrsNoIpam: '["10.0.0.5"]' }],
  ])("refuses a list together with addresses: %j", (values) => {
    const { kind, message } = thrownBy(() => requests(values));

    expect([kind, message]).toEqual(["annotation-invalid", expect.stringContaining("only one of the two is allowed")]);
    for (const name of Object.keys(values)) expect(message).toContain(annotationKey(name as AnnotationName));
  });

  test("uses no other annotations of a namespace", () => {
    expect(requests({}, { ipAddrs: '["10.0.0.5"]', ipAddrsNoIpam: "x", floatingIPs: "x", hwAddr: "x" })).toEqual({
      pools: {},
    });
  });

  test.each<readonly [string, Values, string]>([
    ["text that is not JSON", { ipAddrs: "10.0.0.5" }, "not a JSON array of strings"],
    ["JSON that is not an array", { ipv4pools: '"blue"' }, "not a JSON array of strings"],
    ["an array of something else", { ipAddrs: "[5]" }, "not a JSON array of strings"],
    ["an empty array", { ipAddrs: "[]" }, "the list is empty"],
    ["an empty list of pools", { ipv6pools: "[]" }, "the list is empty"],
    ["a bad address", { ipAddrs: '["10.0.0"]' }, '"10.0.0" is not an IP address'],
    ["a network instead of an address", { ipAddrsNoIpam: '["10.0.0.5/32"]' }, '"10.0.0.5/32" is not an IP address'],
    ["an address that no pod can have", { ipAddrsNoIpam: '["127.0.0.1"]' }, "a loopback address"],
    ["a floating IP that no pod can have", { floatingIPs: '["ff02::1"]' }, "a multicast address"],
    ["two IPv4 addresses", { ipAddrs: '["10.0.0.5", "10.0.0.6"]' }, "two IPv4 addresses"],
    ["two IPv6 addresses", { ipAddrsNoIpam: '["fd00::5", "10.0.0.5", "fd00::6"]' }, "two IPv6 addresses"],
    ["an IPv6 pool for IPv4", { ipv4pools: '["fd00::/64"]' }, "CIDR of an IPv4 pool"],
    ["an IPv4 pool for IPv6", { ipv6pools: '["blue6", "10.1.0.0/16"]' }, "CIDR of an IPv6 pool"],
    ["an address instead of a pool", { ipv4pools: '["10.1.0.0"]' }, "neither the name of a pool"],
    ["names of lists in a list", { ipAddrsFrom: '["web"]' }, "it is not the name of an IPAddressList; write one name"],
    ["no name of a list", { ipAddrsFrom: "" }, "it is not the name of an IPAddressList"],
    ["families without a list", { ipFamilies: "IPv4" }, "not a JSON array of strings"],
    ["no family", { ipFamilies: "[]" }, "the list is empty"],
    ["an unknown family", { ipFamilies: '["IPv4", "ipv6"]' }, '"ipv6" is not a family; write ["IPv4"], ["IPv6"] or'],
    ["a bad MAC", { hwAddr: "02:42" }, "not a MAC address"],
    ["a MAC of a group", { hwAddr: "01:42:ac:11:00:02" }, "group address"],
    ["source prefixes without a list", { allowedSourcePrefixes: "10.0.0.0/8" }, "not a JSON array of strings"],
    ["no source prefix", { allowedSourcePrefixes: "[]" }, "the list is empty"],
    ["a source without a length", { allowedSourcePrefixes: '["10.0.0.5"]' }, '"10.0.0.5" is not a CIDR'],
    ["a source of a wrong length", { allowedSourcePrefixes: '["10.0.0.0/33"]' }, '"10.0.0.0/33" is not a CIDR'],
    ["an IPv4 source as IPv6", { allowedSourcePrefixes: '["::ffff:10.0.0.0/104"]' }, "write it as IPv4"],
  ])("refuses %s, with pod, annotation, value and rule", (_, values, rule) => {
    const error = thrownBy(() => requests(values));

    expect(error.kind).toBe("annotation-invalid");
    const [[name, text] = ["", ""]] = Object.entries(values);
    expect(error.message).toContain(`annotation "${identity.annotationPrefix}${name}" of pod "shop/web"`);
    expect(error.message).toContain(JSON.stringify(text));
    expect(error.message).toContain(rule);
  });

  test.each<readonly [AnnotationName, (number: number) => string]>([
    ["floatingIPs", (number) => `192.0.2.${number}`],
    ["allowedSourcePrefixes", (number) => `198.51.${number}.0/24`],
  ])("accepts as many different values of %s as can be recorded, and no more", (name, nth) => {
    const values = (count: number) => Array.from({ length: count }, (_, index) => nth(index + 1));
    const most = values(MOST_RECORDED_VALUES);
    const { floatingAddresses, sourcePrefixes } = requests({ [name]: JSON.stringify([...most, ...most]) });
    expect((floatingAddresses ?? sourcePrefixes)?.value).toHaveLength(MOST_RECORDED_VALUES);

    const error = thrownBy(() => requests({ [name]: JSON.stringify(values(MOST_RECORDED_VALUES + 2)) }));
    expect(error.kind).toBe("annotation-invalid");
    expect(error.message).toContain(`annotation "${annotationKey(name)}" of pod "shop/web": "[\\"${nth(1)}`);
    expect(error.message).toContain("it has 34 different values; at most 32 are allowed: remove 2 of them");

    const limits = { ...ALL_ON, mostRecordedValues: mostRecordedValues("etcd") };
    const onEtcd = annotationRequests(podWith({ [name]: JSON.stringify(values(100)) }), limits);
    expect((onEtcd.floatingAddresses ?? onEtcd.sourcePrefixes)?.value).toHaveLength(100);
  });

  test("reads source prefixes of both families, each once, without host bits", () => {
    const { sourcePrefixes } = requests({
      allowedSourcePrefixes: '["198.51.100.7/24", "198.51.100.0/24", "2001:db8::5/64", "0.0.0.0/0"]',
    });

    expect(sourcePrefixes?.value.map(formatPrefix)).toEqual(["198.51.100.0/24", "2001:db8::/64", "0.0.0.0/0"]);
  });

  test("refuses addresses with and without IPAM together, and shows both", () => {
    const error = thrownBy(() => requests({ ipAddrs: '["10.0.0.5"]', ipAddrsNoIpam: '["10.0.0.6"]' }));

    expect(error.kind).toBe("annotation-invalid");
    expect(error.message).toContain("10.0.0.5");
    expect(error.message).toContain("10.0.0.6");
    expect(error.message).toContain("only one of the two");
  });

  test.each<readonly [AnnotationName, AnnotationLimits["features"], string]>([
    ["ipAddrsNoIpam", { ...ALL_ON.features, ipAddrsNoIpam: false }, "feature_control.ip_addrs_no_ipam"],
    ["floatingIPs", { ...ALL_ON.features, floatingIps: false }, "feature_control.floating_ips"],
    [
      "allowedSourcePrefixes",
      { ...ALL_ON.features, allowedSourcePrefixes: false },
      "feature_control.allowed_source_prefixes",
    ],
  ])("refuses %s while its switch is off, and names the switch", (name, features, field) => {
    const error = thrownBy(() => annotationRequests(podWith({ [name]: '["10.0.0.5"]' }), { ...ALL_ON, features }));

    expect(error.kind).toBe("annotation-invalid");
    expect(error.message).toContain(`annotation "${annotationKey(name)}" of pod "shop/web"`);
    expect(error.message).toContain(`"${field}" of the network config is not true`);
  });

  test.each<readonly [string, Values, Values]>([
    ["addresses", { ipAddrs: '["10.0.0.5"]' }, {}],
    ["addresses without IPAM", { ipAddrsNoIpam: '["10.0.0.5"]' }, {}],
    ["pools", { ipv4pools: '["blue"]' }, {}],
    ["pools of the namespace", {}, { ipv6pools: '["blue6"]' }],
  ])("refuses %s with another IPAM plugin", (_, pod, namespace) => {
    const error = thrownBy(() => annotationRequests(podWith(pod, namespace), { ...ALL_ON, ipamType: "host-local" }));

    expect(error.kind).toBe("annotation-invalid");
    expect(error.message).toContain('do not work with IPAM plugin "host-local"');
  });

  test("allows floating IPs and a MAC with another IPAM plugin", () => {
    const pod = podWith({ floatingIPs: '["192.0.2.8"]', hwAddr: "02:42:ac:11:00:02" });

    expect(annotationRequests(pod, { ...ALL_ON, ipamType: "host-local" })).toMatchObject({
      floatingAddresses: { value: [address("192.0.2.8")] },
    });
  });
});

describe("uselessAnnotations()", () => {
  const { annotationPrefix: prefix } = identity;

  test("reports those with the product's prefix that it neither reads nor writes, with the one that was meant", () => {
    const annotations = {
      [`${prefix}ipaddrs`]: "[]",
      [`${prefix}colour`]: "red",
      [`${prefix}podIP`]: "10.0.0.5/32",
      [`${prefix}ipAddrs`]: "[]",
      "example.org/ipAddr": "[]",
    };

    expect(uselessAnnotations({ ...podWith({}), annotations })).toEqual([
      `annotation "${prefix}ipaddrs" of pod "shop/web" has no effect: it is not known; did you mean "${prefix}ipAddrs"?`,
      `annotation "${prefix}colour" of pod "shop/web" has no effect: it is not known`,
    ]);
  });

  test("reports annotations of the namespace that are read on pods only", () => {
    expect(uselessAnnotations(podWith({}, { ipAddrs: '["10.0.0.5"]', ipv4pools: '["blue"]' }))).toEqual([
      `annotation "${prefix}ipAddrs" of namespace "shop" (pod "shop/web") has no effect: it is read on pods only`,
    ]);
  });
});
