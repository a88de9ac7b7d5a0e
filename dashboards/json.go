package dashboards

import (
	"embed"
	"io/fs"
)

//go:embed json/*.json
var grafana embed.FS

// JSON returns the dashboards as files that Grafana can import, such as stormglass-etcd.json.
func JSON() fs.FS {
	sub, err := fs.Sub(grafana, "json")
	if err != nil { // fails only for an invalid name
		panic(err)
	}
	return sub
}
