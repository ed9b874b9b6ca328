// The reference client of the CNI project.
module parts.invalid/cnitool

go 1.25.0

tool github.com/containernetworking/cni/cnitool

require (
	github.com/containernetworking/cni v1.3.1 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/cobra v1.9.1 // indirect
	github.com/spf13/pflag v1.0.6 // indirect
	go.opentelemetry.io/otel v1.29.0 // indirect
	go.opentelemetry.io/otel/trace v1.29.0 // indirect
)
