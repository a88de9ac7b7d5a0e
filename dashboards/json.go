package dashboards

import (
	"embed"
	"io/fs"
)

//go:embed json/*.json
var grafana embed.FS

// JSON holds the dashboards as Grafana imports them, by name: stormglass-etcd.json.
func JSON() fs.FS {
	sub, err := fs.Sub(grafana, "json")
	if err != nil { // the name is valid
		panic(err)
	}
	return sub
}
