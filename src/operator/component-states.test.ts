import { describe, expect, test } from "bun:test";
import { followedSnapshot, liveObject } from "../../test/support/followed-snapshot.ts";
import { identity } from "../identity.ts";
import { workloadStates } from "./component-states.ts";
import { summaryOf } from "./conditions.ts";

const namespaces = { operator: "of-operator", components: "system" };

function statesOf(hasConsole: boolean, console?: "Enabled" | "Disabled") {
  const deployment = liveObject("Deployment", identity.console, {
    ...{ apiVersion: "apps/v1", metadata: { namespace: "system" }, spec: { replicas: 1 } },
    status: { observedGeneration: 1, updatedReplicas: 1, availableReplicas: 0 },
  });
  const snapshot = followedSnapshot({ deployments: hasConsole ? [deployment] : [] });
  return workloadStates(snapshot, namespaces, (object) => object, console === undefined ? {} : { console });
}

describe("workloadStates()", () => {
  test("say nothing of a console that is switched off, also while its Deployment is still there", () => {
    expect(Object.keys(statesOf(false))).toEqual(["node", "controllers"]);
    expect(Object.keys(statesOf(false, "Disabled"))).toEqual(["node", "controllers"]);
    expect(Object.keys(statesOf(true, "Disabled"))).toEqual(["node", "controllers"]);
  });

  test("name a console that is not ready in the summary", () => {
    const messageOf = (states: ReturnType<typeof statesOf>) => summaryOf({ ...states }).available.message;

    expect(messageOf(statesOf(false, "Enabled"))).toContain(`console: system/${identity.console} does not exist yet`);
    expect(messageOf(statesOf(true, "Enabled"))).toContain(
      `console: Deployment system/${identity.console}: 0 of 1 pod are available`,
    );
  });

  test("report on the console that runs if the Installation cannot be read", () => {
    expect(statesOf(true).console?.available.status).toBe("False");
  });
});
