/** Opens etcd by discovery, and prints the key it read, or the failure. Runs with the test's own resolver. */

import { openEtcd } from "../../src/datastore/etcd/etcd.ts";
import { PluginError } from "../../src/errors.ts";

export const DISCOVERY_PROCESS = import.meta.path;

if (import.meta.main) {
  const [domain = "", caCertFile = ""] = process.argv.slice(2);
  try {
    const tls = caCertFile === "" ? {} : { caCertFile };
    const store = await openEtcd({ source: { kind: "discovery", domain }, ...tls });
    const { answers } = await store.read([{ kind: "key", key: "/name" }]);
    console.log(answers[0]?.[0]?.value);
    await store.close();
  } catch (error) {
    if (!(error instanceof PluginError)) throw error;
    console.log(`${error.kind}: ${error.message}`);
  }
}
