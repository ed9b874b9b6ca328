export function AddressesView() {
  return <h1>Addresses</h1>;
}
