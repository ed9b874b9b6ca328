/**
 * Discovery through the system's resolver: a real DNS server on its own loopback
 * address, and a private mount namespace whose resolv.conf names it.
 */
import { afterAll, beforeAll, describe, expect } from "bun:test";
import { createSocket } from "node:dgram";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeRoot, makeSigned } from "../support/certificates.ts";
import { DYING_WITH_PARENT, type EtcdCluster, etcdctl, hasEtcd, startEtcd } from "../support/etcd.ts";
import { program, root, testNeeding } from "../support/needs.ts";
import { pollUntil } from "../support/poll.ts";
import { type TemporaryDirectory, temporaryDirectory } from "../support/temporary-directory.ts";
import { DISCOVERY_PROCESS } from "./discovery.process.ts";

const RESOLVER = `127.77.${process.pid % 250}.53`;
const needs = [root, program("etcd"), program("dnsmasq"), program("unshare"), program("openssl")] as const;
const isAble = needs.every((need) => need === undefined) && hasEtcd;

let directory: TemporaryDirectory;
let clusters: readonly EtcdCluster[] = [];
let dnsmasq: ReturnType<typeof Bun.spawn>;
let rootCertificate = "";

beforeAll(async () => {
  if (!isAble) return;
  directory = temporaryDirectory("discovery");
  const ca = makeRoot(directory.path, "ca");
  rootCertificate = ca.cert;
  const tls = makeSigned(directory.path, "server", ca);
  clusters = await Promise.all([startEtcd(), startEtcd(), startEtcd({ tls })]);
  clusters.forEach((cluster, index) => {
    const flags = index === 2 ? [`--cacert=${ca.cert}`] : [];
    etcdctl(cluster.endpoints[0] ?? "", ["put", "/name", `cluster ${index}`], flags);
  });
  writeFileSync(join(directory.path, "resolv.conf"), `nameserver ${RESOLVER}\n`);
  await startDnsmasq();
});

afterAll(async () => {
  if (!isAble) return;
  dnsmasq.kill("SIGKILL");
  await Promise.all([dnsmasq.exited, ...clusters.map((cluster) => cluster.stop())]);
  directory.remove();
});

async function startDnsmasq(): Promise<void> {
  const [first = "", second = "", secure = ""] = clusters.map(({ endpoints }) => new URL(endpoints[0] ?? "").port);
  const service = (name: string, domain: string, port: string, priority: number) =>
    `--srv-host=${name}.${domain},member.${domain},${port},${priority},10`;
  const domains = ["plain.test", "backup.test"];
  dnsmasq = Bun.spawn(
    [
      ...DYING_WITH_PARENT,
      "dnsmasq",
      "--keep-in-foreground",
      "--conf-file=/dev/null",
      "--pid-file=",
      "--no-resolv",
      "--no-hosts",
      "--bind-interfaces",
      `--listen-address=${RESOLVER}`,
      "--local=/test/",
      "--user=root",
      ...domains.map((domain) => `--host-record=member.${domain},127.0.0.1`),
      "--host-record=localhost.test,127.0.0.1",
      service("_etcd-client._tcp", "plain.test", first, 20),
      service("_etcd-client._tcp", "plain.test", second, 10),
      service("_etcd-client._tcp", "backup.test", "1", 10),
      service("_etcd-client._tcp", "backup.test", second, 20),
      `--srv-host=_etcd-client._tcp.secure.test,localhost.test,${first},0,10`,
      `--srv-host=_etcd-client-ssl._tcp.secure.test,localhost,${secure},0,10`,
    ],
    { stdin: "ignore", stdout: "ignore", stderr: Bun.file(join(directory.path, "dnsmasq.log")) },
  );
  await pollUntil(answersAtAll, "dnsmasq");
}

/** Any response to a query for the root is enough. */
async function answersAtAll(): Promise<boolean> {
  const socket = createSocket("udp4");
  const answered = Promise.withResolvers<boolean>();
  const timer = setTimeout(() => answered.resolve(false), 200);
  socket.on("message", () => answered.resolve(true));
  socket.on("error", () => answered.resolve(false));
  socket.send(Uint8Array.of(0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1), 53, RESOLVER);
  return answered.promise.finally(() => {
    clearTimeout(timer);
    socket.close();
  });
}

async function discover(domain: string, ...more: readonly string[]): Promise<string> {
  const script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"';
  const command = [process.execPath, DISCOVERY_PROCESS, domain, ...more];
  const child = Bun.spawn(["unshare", "-m", "sh", "-c", script, join(directory.path, "resolv.conf"), ...command], {
    stderr: "inherit",
  });
  return (await new Response(child.stdout).text()).trim();
}

describe("openEtcd() by discovery", () => {
  const discoveryTest = testNeeding(...needs);

  discoveryTest("takes the member of the lowest priority number", async () => {
    expect(await discover("plain.test")).toBe("cluster 1");
  });

  discoveryTest("goes on to the next priority when the first does not answer", async () => {
    expect(await discover("backup.test")).toBe("cluster 1");
  });

  discoveryTest("prefers the records for TLS, and checks the certificate against the target's name", async () => {
    expect(await discover("secure.test", rootCertificate)).toBe("cluster 2");
    expect(await discover("secure.test")).toContain('failed at stage "TLS"');
  });

  discoveryTest("says that there is no record", async () => {
    expect(await discover("absent.test")).toMatch(/^datastore-unavailable: .*"absent.test" at stage "resolve"/);
  });
});
