/** A host for `config check` that has nothing, or what a test gives it. */
import type { ConfigHost } from "../../src/admin/config/check-network-file.ts";

export function configHost(given: Partial<ConfigHost> = {}): ConfigHost {
  return {
    runtimes: [],
    pluginDirectories: [],
    plugins: new Set(),
    unreadable: [],
    isDirectory: async () => false,
    isAbsent: async () => false,
    readPools: async () => ({ readable: [], unreadable: [] }),
    ...given,
  };
}
