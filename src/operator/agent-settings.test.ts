import { describe, expect, test } from "bun:test";
import { identity } from "../identity.ts";
import { NODE_AGENT_CONFIGURATION } from "../model/kinds.ts";
import type { NodeAgentConfigurationSpec } from "../model/node-agent-configuration.ts";
import { configurationChanges, configurationRemoval } from "./agent-settings.ts";

const { codec } = NODE_AGENT_CONFIGURATION;

/** The configuration after the changes, as the datastore would have it. */
function written(changes: ReturnType<typeof configurationChanges>) {
  const [change] = changes;
  if (change === undefined || !("value" in change) || change.value === undefined) throw new Error("nothing is written");
  const resource = codec.read(change.value, change.key);
  return { resource, text: change.value, revision: "2" };
}

const administrators = (spec: NodeAgentConfigurationSpec) => {
  const resource = codec.make({ name: "default" }, spec);
  return { resource, text: codec.write(resource), revision: "1" };
};

describe("configurationChanges()", () => {
  test("creates it with the operator's label, and then changes nothing", () => {
    const created = written(configurationChanges({ bgp: "Enabled" }, []));

    expect(created.resource.metadata.labels).toEqual({ "app.kubernetes.io/managed-by": identity.operator });
    expect(configurationChanges({ bgp: "Enabled" }, [created])).toEqual([]);
  });

  test("sets its own fields, leaves the administrator's, and removes those that it no longer sets", () => {
    const before = administrators({ bgp: "Disabled", tablesRefreshInterval: "90s" });
    const first = written(configurationChanges({ bgp: "Enabled", prometheusMetricsPort: 9100 }, [before]));
    expect(first.resource.spec).toEqual({ bgp: "Enabled", tablesRefreshInterval: "90s", prometheusMetricsPort: 9100 });

    const second = written(configurationChanges({ bgp: "Enabled" }, [first]));
    expect(second.resource.spec).toEqual({ bgp: "Enabled", tablesRefreshInterval: "90s" });
  });

  test("is removed with the Installation only if the operator created it", () => {
    const created = written(configurationChanges({ bgp: "Enabled" }, []));
    const adopted = written(configurationChanges({ bgp: "Enabled" }, [administrators({})]));

    expect(configurationRemoval([created]).map(({ kind }) => kind)).toEqual(["delete"]);
    expect(configurationRemoval([adopted])).toEqual([]);
  });
});
