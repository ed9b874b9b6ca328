/** How large the long proofs are: small with every `make test`, at full size with `make soak` (PROOF_SIZE=soak). */
export function proofSize<Size>(sizes: { readonly everyDay: Size; readonly soak: Size }): Size {
  return process.env["PROOF_SIZE"] === "soak" ? sizes.soak : sizes.everyDay;
}
