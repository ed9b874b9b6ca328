/**
 * `-t`: tests whether the datastore of a network config is reachable and usable,
 * before any container needs it.
 */
import type { JsonObject } from "../cni/json.ts";
import { datastoreSettings } from "../config/datastore-settings.ts";
import { requireNetworkConfig } from "../config/decode.ts";
import { openDatastore } from "../datastore/open.ts";
import { PluginError } from "../errors.ts";
import { requireReady, WANTED_CLUSTER } from "../ipam/cluster.ts";
import type { Surroundings } from "./session.ts";

const LIMIT_MILLISECONDS = 10_000;

export async function testConnection(config: JsonObject, { random }: Pick<Surroundings, "random">): Promise<void> {
  const settings = datastoreSettings(requireNetworkConfig(config).config);
  const limit = Promise.withResolvers<never>();
  const message = `Cannot use the ${settings.kind} datastore: no response within ${LIMIT_MILLISECONDS / 1000} s`;
  const details = "the server accepts connections but does not respond: check its address and its log";
  const timer = setTimeout(
    () => limit.reject(new PluginError("datastore-unavailable", message, { details })),
    LIMIT_MILLISECONDS,
  );
  const test = async () => {
    const store = await openDatastore(settings, { random });
    try {
      const { answers } = await store.read([WANTED_CLUSTER]);
      const whenUninitialized = settings.kind === "embedded" ? "accept" : "refuse";
      requireReady(answers[0], { whenUninitialized });
    } finally {
      await store.close();
    }
  };
  try {
    await Promise.race([test(), limit.promise]);
  } finally {
    clearTimeout(timer);
  }
}
