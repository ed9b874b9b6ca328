/** The networks that every client uses: one row here adds a network to all client tests. */
import { type NetworkUnderTest, upstreamNetwork } from "../support/network-under-test.ts";
import { productNetwork } from "../support/product-network.ts";

export async function networksUnderTest(): Promise<readonly NetworkUnderTest[]> {
  return [
    await productNetwork("embedded"),
    await productNetwork("etcd"),
    await productNetwork("etcd", "by the node agent"),
    await upstreamNetwork(),
  ];
}
