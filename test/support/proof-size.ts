/** The size of the long tests: small in `make test`, full in `make soak` (PROOF_SIZE=soak). */
export function proofSize<Size>(sizes: { readonly everyDay: Size; readonly soak: Size }): Size {
  return process.env["PROOF_SIZE"] === "soak" ? sizes.soak : sizes.everyDay;
}
