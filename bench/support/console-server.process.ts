/**
 * The console of a cluster with etcd, in a process of its own, by plain HTTP on loopback: what `vendor-console` runs, without its
 * certificate. Prints its address.
 *   bun console-server.process.ts API-SERVER ETCD
 */
import { loadPage } from "../../src/console/page-bundle.ts";
import { ConsoleServer } from "../../src/console/server/console-server.ts";
import { clusterSources } from "../../src/console/source/cluster-source.ts";
import { openDatastore } from "../../src/datastore/open.ts";
import { SYSTEM_CLOCK } from "../../src/datastore/replica/clock.ts";
import { identity } from "../../src/identity.ts";
import { openKubeClient } from "../../src/kube/client.ts";
import { LIMITS } from "../../src/kube/retries.ts";
import { SYSTEM_TIMERS } from "../../src/timers.ts";
import { VERSION } from "../../src/version.ts";
import { meansWith } from "../../test/support/imitated-api.ts";

const [apiRoot = "", endpoint = ""] = process.argv.slice(2);
const etcd = await openDatastore({ kind: "etcd", source: { kind: "endpoints", endpoints: [endpoint] } });
const server = new ConsoleServer({
  page: await loadPage(),
  openSource: clusterSources({
    ...{ version: VERSION, server: { apiRoot }, etcd, now: () => new Date(), uuid: () => crypto.randomUUID() },
    wait: (milliseconds) => SYSTEM_CLOCK.wait(milliseconds, new AbortController().signal),
    openClient: (access) => openKubeClient(access, meansWith({ limits: LIMITS })),
  }),
  ...{ clock: SYSTEM_CLOCK, timers: SYSTEM_TIMERS, now: Date.now, log: (message) => console.error(message) },
  about: { product: identity.title, version: VERSION, mode: "cluster", writable: true },
  cookie: () => `__Host-${identity.console}`,
  isOwnHost: (name) => name === "127.0.0.1",
});
await server.listen("127.0.0.1", 0);
console.log(`http://127.0.0.1:${server.port}/`);
