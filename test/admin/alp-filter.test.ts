/** The filters of `deploy/alp/` in a configuration of real Envoy: it checks them, and starts nothing. */
import { afterAll, describe, expect } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { partIfBuilt } from "../parts/build.ts";
import { envoyProblem } from "../support/envoy.ts";
import { testNeeding } from "../support/needs.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const envoy = partIfBuilt("envoy");
const folder = temporaryDirectory("alp-filter");
afterAll(() => folder.remove());

const TYPES = "type.googleapis.com/envoy.extensions.filters";

/** The one for mesh 1.6 is for an Envoy whose API no newer one has. */
describe.each(["envoy-filter-1.7", "envoy-filter"])("deploy/alp/%s.yaml", (name) => {
  testNeeding(envoyProblem())("is accepted by Envoy", async () => {
    const [cluster, network, http] = patchesOf(name);
    const path = join(folder.path, `${name}.json`);
    await Bun.write(path, JSON.stringify(configWith({ cluster, network, http })));
    const program = "path" in envoy ? envoy.path : "";
    const { exitCode, stderr } = Bun.spawnSync([program, "--mode", "validate", "--log-level", "error", "-c", path]);

    expect({ exitCode, stderr: stderr.toString() }).toEqual({ exitCode: 0, stderr: "" });
  });
});

interface EnvoyFilter {
  readonly spec: { readonly configPatches: readonly { readonly patch: { readonly value: Value } }[] };
}

interface Value {
  readonly name: string;
}

function patchesOf(name: string): readonly Value[] {
  const text = readFileSync(join(import.meta.dir, `../../deploy/alp/${name}.yaml`), "utf8");
  return (Bun.YAML.parse(text) as EnvoyFilter).spec.configPatches.map(({ patch }) => patch.value);
}

interface Parts {
  readonly cluster: Value | undefined;
  readonly network: Value | undefined;
  readonly http: Value | undefined;
}

/** One listener for requests, one for connections, each with the filter before its last one. */
function configWith({ cluster, network, http }: Parts): object {
  const router = { name: "envoy.filters.http.router", typed_config: { "@type": `${TYPES}.http.router.v3.Router` } };
  const type = `${TYPES}.network.http_connection_manager.v3.HttpConnectionManager`;
  const route = { match: { prefix: "/" }, route: { cluster: cluster?.name } };
  const routes = { virtual_hosts: [{ name: "all", domains: ["*"], routes: [route] }] };
  const manager = {
    name: "envoy.filters.network.http_connection_manager",
    typed_config: { "@type": type, stat_prefix: "http", route_config: routes, http_filters: [http, router] },
  };
  const tcp = { "@type": `${TYPES}.network.tcp_proxy.v3.TcpProxy`, stat_prefix: "tcp", cluster: cluster?.name };
  const proxy = { name: "envoy.filters.network.tcp_proxy", typed_config: tcp };
  const listenerOf = (name: string, filters: readonly unknown[]) => ({
    name,
    address: { pipe: { path: `/nonexistent/${name}` } },
    filter_chains: [{ filters }],
  });
  const listeners = [listenerOf("requests", [manager]), listenerOf("connections", [network, proxy])];
  return { static_resources: { listeners, clusters: [cluster] } };
}
