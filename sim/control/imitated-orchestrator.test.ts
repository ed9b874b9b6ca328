import { expect, test } from "bun:test";
import { FaultyNetwork } from "../faults/network.ts";
import { Random } from "../schedule/random.ts";
import { Scheduler } from "../schedule/scheduler.ts";
import { openApi } from "./api/open-api.ts";
import { ImitatedOrchestrator } from "./imitated-orchestrator.ts";

const DAEMON_SETS = "/apis/apps/v1/namespaces/default/daemonsets";
const REVISIONS = "/apis/apps/v1/namespaces/default/controllerrevisions";

test("a template that a DaemonSet has had before gets the highest revision again", async () => {
  const scheduler = new Scheduler(new Random(1));
  const api = openApi(new FaultyNetwork(scheduler, new Random(2)));
  new ImitatedOrchestrator(api, scheduler, new Random(3));
  const template = (image: string) => ({
    metadata: { labels: { app: "web" } },
    spec: { containers: [{ name: "web", image }] },
  });
  const use = async (image: string) => {
    api.patch(`${DAEMON_SETS}/web`, { spec: { template: template(image) } });
    await scheduler.runUntil(scheduler.now + 10_000);
    return api
      .list(REVISIONS)
      .toSorted((one, other) => Number(other["revision"]) - Number(one["revision"]))
      .map(({ metadata: { name } }) => name);
  };
  api.create("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "default" } });
  api.create(DAEMON_SETS, {
    ...{ apiVersion: "apps/v1", kind: "DaemonSet", metadata: { name: "web", namespace: "default" } },
    spec: { selector: { matchLabels: { app: "web" } }, template: template("one") },
  });

  const before = await use("one");
  const between = await use("two");
  expect([before.length, between.slice(1)]).toEqual([1, before]);
  expect(await use("one")).toEqual(between.toReversed());
});
