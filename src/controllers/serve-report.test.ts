import { expect, test } from "bun:test";
import { freePorts } from "../../test/support/etcd.ts";
import { ReportServer } from "./serve-report.ts";
import { controllerSettings } from "./settings.ts";

test("a replica whose port another one of the same host has takes it over, and says so once before", async () => {
  const [port = 0] = await freePorts(1);
  const problems: string[] = [];
  const report = {
    controllers: [],
    collector: undefined,
    usage: undefined,
    clusterMismatch: undefined,
    isDatastoreLocked: false,
    unconfirmedCluster: undefined,
    isLeading: false,
    electedAt: 0,
    now: 0,
  };
  const server = new ReportServer(
    () => report,
    port,
    (message) => problems.push(message),
  );
  const { running } = controllerSettings({}, undefined, { isEtcd: true });
  const other = Bun.serve({ port, fetch: () => new Response("the other") });

  server.listen({ ...running, prometheusMetricsPort: 0 });
  server.listenAgain();
  expect(problems).toHaveLength(1);
  await other.stop(true);
  server.listenAgain();

  expect(await (await fetch(`http://127.0.0.1:${port}/readiness`)).text()).toBe("ready\n");
  server.close();
});
