package capture

import (
	"bytes"
	"net/url"
	"strconv"
)

// query holds the query parameters of a request that a recording needs.
type query struct {
	labels, fields, revision     []byte
	limit                        int64
	paged, initialEvents, dryRun bool
	forced, manager              bool
	scratchLabels, scratchFields []byte
}

// parse parses the query of a URI. If a value cannot be unescaped, parse keeps it unchanged.
func (q *query) parse(raw []byte) {
	*q = query{scratchLabels: q.scratchLabels, scratchFields: q.scratchFields}
	for len(raw) > 0 {
		var pair []byte
		pair, raw, _ = bytes.Cut(raw, []byte("&"))
		key, value, _ := bytes.Cut(pair, []byte("="))
		if len(value) == 0 {
			continue
		}
		switch string(key) {
		case "labelSelector":
			q.labels = unescape(&q.scratchLabels, value)
		case "fieldSelector":
			q.fields = unescape(&q.scratchFields, value)
		case "resourceVersion":
			q.revision = value
		case "limit":
			q.limit, _ = strconv.ParseInt(string(value), 10, 64)
			q.limit = max(q.limit, 0)
		case "continue":
			q.paged = true
		case "sendInitialEvents":
			q.initialEvents = string(value) == "true"
		case "dryRun":
			q.dryRun = true
		case "force":
			q.forced = true
		case "fieldManager":
			q.manager = true
		}
	}
}

// unescape returns the unescaped value. If value contains escapes, unescape stores the result in scratch.
func unescape(scratch *[]byte, value []byte) []byte {
	if bytes.IndexByte(value, '%') < 0 && bytes.IndexByte(value, '+') < 0 {
		return value
	}
	plain, err := url.QueryUnescape(string(value))
	if err != nil {
		return value
	}
	*scratch = append((*scratch)[:0], plain...)
	return *scratch
}
