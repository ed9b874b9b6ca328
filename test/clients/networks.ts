/**
 * The networks that every client uses: one row here adds a network to all client tests.
 * `make test` leaves out etcd without the node agent, which the tests of the plugin use,
 * and upstream's plugins, which show that a client is used as it should be.
 */
import { type NetworkUnderTest, upstreamNetwork } from "../support/network-under-test.ts";
import { productNetwork } from "../support/product-network.ts";
import { proofSize } from "../support/proof-size.ts";

export async function networksUnderTest(): Promise<readonly NetworkUnderTest[]> {
  const everyDay = [await productNetwork("embedded"), await productNetwork("etcd", "by the node agent")];
  return proofSize({ everyDay, soak: [...everyDay, await productNetwork("etcd"), await upstreamNetwork()] });
}
