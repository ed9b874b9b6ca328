// Reads a template of a mesh's injector and prints what it makes of a pod without annotations, with simple values.
// A template that text/template refuses, or cannot execute, is an error.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

type meta struct {
	Name, Namespace     string
	Annotations, Labels map[string]string
}

// Values of the mesh's own types, which templates also ask by a method.
type (
	mode    string
	number  int
	boolean bool
)

func (value mode) String() string    { return string(value) }
func (value number) GetValue() int   { return int(value) }
func (value boolean) GetValue() bool { return bool(value) }

type values = map[string]any

func main() {
	text, err := io.ReadAll(os.Stdin)
	check(err)
	parsed, err := template.New("injected").Funcs(functions).Parse(string(text))
	check(err)
	check(parsed.Execute(os.Stdout, data()))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func data() values {
	return values{
		"TypeMeta":       values{"APIVersion": "apps/v1", "Kind": "Deployment"},
		"DeploymentMeta": meta{Name: "web", Namespace: "shop"},
		"ObjectMeta":     meta{Annotations: map[string]string{}, Labels: map[string]string{"app": "web"}},
		"Spec": values{
			"ServiceAccountName": "web",
			"Containers":         []values{{"Name": "web", "Ports": []values{{"containerPort": 8080}}}},
		},
		"ProxyConfig": values{
			"InterceptionMode":                mode("REDIRECT"),
			"Concurrency":                     number(2),
			"HoldApplicationUntilProxyStarts": boolean(false),
			"ProxyMetadata":                   map[string]string{},
		},
		"MeshConfig":           values{"TrustDomain": "mesh.example", "ProxyListenPort": 15001},
		"Revision":             "default",
		"ProxyImage":           "example/proxyv2:1",
		"EstimatedConcurrency": 2,
		"Values": values{
			"revision":               "",
			"istio_cni":              values{"enabled": false, "chained": true},
			"sidecarInjectorWebhook": values{"rewriteAppHTTPProbe": true},
			"global": values{
				"hub": "example", "tag": "1", "network": "", "meshID": "", "trustDomain": "mesh.example",
				"caName": "", "caAddress": "", "jwtPolicy": "third-party-jwt", "pilotCertProvider": "istiod",
				"istioNamespace": "istio-system", "imagePullPolicy": "IfNotPresent", "logAsJson": false,
				"mountMtlsCerts": false, "debug": false, "certificates": "mounted",
				"logging":      values{"level": "info"},
				"sts":          values{"servicePort": 0},
				"sds":          values{"token": values{"aud": "istio-ca"}},
				"multiCluster": values{"clusterName": ""},
				"proxy_init":   values{"image": "proxyv2", "resources": values{"limits": values{"cpu": "100m"}}},
				"proxy": values{
					"image": "proxyv2", "clusterDomain": "cluster.local", "logLevel": "warning", "tracer": "zipkin",
					"componentLogLevel": "misc:error", "privileged": false, "enableCoreDump": false, "statusPort": 15020,
					"readinessInitialDelaySeconds": 1, "readinessPeriodSeconds": 2, "readinessFailureThreshold": 30,
					"includeIPRanges": "*", "excludeIPRanges": "", "includeInboundPorts": "*", "excludeInboundPorts": "",
					"includeOutboundPorts": "", "excludeOutboundPorts": "", "capNetBindService": "false",
					"resources": values{"requests": values{"cpu": "100m"}}, "holdApplicationUntilProxyStarts": false,
				},
			},
		},
	}
}

var functions = template.FuncMap{
	"annotation": func(of meta, name string, otherwise any) string {
		if value, has := of.Annotations[name]; has {
			return value
		}
		return fmt.Sprint(otherwise)
	},
	"isset":               func(of map[string]string, name string) bool { _, has := of[name]; return has },
	"valueOrDefault":      func(value, otherwise any) any { return choose(value, otherwise) },
	"default":             func(otherwise, value any) any { return choose(value, otherwise) },
	"excludeInboundPort":  excludePort,
	"includeInboundPorts": func(any) string { return "*" },
	"appendMultusNetwork": func(networks, name string) string { return name },
	"contains":            func(part, text string) bool { return strings.Contains(text, part) },
	"toLower":             strings.ToLower,
	"quote":               func(value any) string { return fmt.Sprintf("%q", fmt.Sprint(value)) },
	"indent":              func(_ int, text string) string { return text },
	"render":              func(text string) string { return text },
	"directory":           filepath.Dir,
	"env":                 func(_, otherwise string) string { return otherwise },
	"list":                func(members ...any) []any { return members },
	"append":              func(to []any, member any) []any { return append(to, member) },
	"join": func(with string, members []any) string {
		texts := make([]string, len(members))
		for index, member := range members {
			texts[index] = fmt.Sprint(member)
		}
		return strings.Join(texts, with)
	},
	// JSON is YAML.
	"toYaml": toJSON, "toJSON": toJSON, "structToJSON": toJSON, "protoToJSON": toJSON,
	"fromJSON": func(text string) (value any, err error) { return value, json.Unmarshal([]byte(text), &value) },
}

func choose(value, otherwise any) any {
	if value == nil || value == "" {
		return otherwise
	}
	return value
}

func excludePort(port any, ports string) string {
	text := fmt.Sprint(port)
	for _, each := range strings.Split(ports, ",") {
		if each == text {
			return ports
		}
	}
	if ports == "" {
		return text
	}
	return ports + "," + text
}

func toJSON(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}
