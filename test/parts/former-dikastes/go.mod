module parts.invalid/former-dikastes

go 1.25.0

require github.com/projectcalico/calico v0.0.0-20230111220342-3f7fe4d29054

replace (
	github.com/envoyproxy/data-plane-api => github.com/projectcalico/data-plane-api v0.0.0-20210121211707-a620ff3c8f7e
	github.com/projectcalico/api => github.com/projectcalico/api v0.0.0-20251022175904-f2ab03771208
)
