package fastapi

import (
	"bytes"

	"github.com/valyala/fasthttp"
)

// A requestHeader is a header that affects a request or its answer. All of them are read through this file (internal/lint checks it),
// and each has a row in the tests' table of attacks.
type requestHeader string

const (
	headerAccept           requestHeader = fasthttp.HeaderAccept
	headerAcceptEncoding   requestHeader = fasthttp.HeaderAcceptEncoding
	headerAuthorization    requestHeader = fasthttp.HeaderAuthorization
	headerContentEncoding  requestHeader = fasthttp.HeaderContentEncoding
	headerContentLength    requestHeader = fasthttp.HeaderContentLength
	headerContentType      requestHeader = fasthttp.HeaderContentType
	headerExpect           requestHeader = fasthttp.HeaderExpect // fasthttp reads it, and asks Server.expect
	headerHost             requestHeader = fasthttp.HeaderHost
	headerIfRange          requestHeader = fasthttp.HeaderIfRange
	headerOrigin           requestHeader = fasthttp.HeaderOrigin
	headerPreflightHeaders requestHeader = fasthttp.HeaderAccessControlRequestHeaders
	headerPreflightMethod  requestHeader = fasthttp.HeaderAccessControlRequestMethod
	headerRange            requestHeader = fasthttp.HeaderRange
	headerTransferEncoding requestHeader = fasthttp.HeaderTransferEncoding
	headerUserAgent        requestHeader = fasthttp.HeaderUserAgent // for the log

	headerTraceparent requestHeader = "traceparent"

	headerIdempotencyKey requestHeader = "Idempotency-Key"

	// headerDryRun and headerTaskID have an effect only with the option for replication.
	headerDryRun requestHeader = "DryRun"
	headerTaskID requestHeader = "TaskId"

	headerIncludeMetadata requestHeader = "Svc-Include-Metadata"

	// headerMinPosition and headerMaxStaleness count in a group only.
	headerMaxStaleness requestHeader = "Svc-Max-Staleness"
	headerMinPosition  requestHeader = "Svc-Min-Position"
	// headerForwarded says that a member of the group has forwarded a request. A member that does not lead the group does not forward
	// it again.
	headerForwarded requestHeader = "Svc-Forwarded"

	// Headers from other instances of the network. network_peers.go says who may send them.
	headerNetworkVersion requestHeader = "Svc-Network-Version"
	headerOriginNonce    requestHeader = "Svc-Proxy-Origin-Nonce"
	headerOriginRemote   requestHeader = "Svc-Proxy-Origin-Remote"
	headerOriginTask     requestHeader = "Svc-Proxy-Origin-TaskUid"
	headerOriginVersion  requestHeader = "Svc-Proxy-Origin-Network-Version"
	headerProxyForeign   requestHeader = "Svc-Proxy-Foreign"
	headerProxySearch    requestHeader = "Svc-Proxy-Search"
	headerSearchTime     requestHeader = "Svc-Proxy-Search-Time" // seconds since 1970
)

// requestHeaders are all of them.
var requestHeaders = []requestHeader{
	headerAccept, headerAcceptEncoding, headerAuthorization, headerContentEncoding, headerContentLength, headerContentType, headerExpect, headerHost,
	headerIfRange, headerOrigin, headerPreflightHeaders, headerPreflightMethod, headerRange, headerTransferEncoding, headerUserAgent, headerTraceparent, headerDryRun, headerTaskID,
	headerForwarded, headerIdempotencyKey, headerIncludeMetadata, headerMaxStaleness, headerMinPosition, headerNetworkVersion, headerOriginNonce, headerOriginRemote, headerOriginTask, headerOriginVersion, headerProxyForeign, headerProxySearch,
	headerSearchTime,
}

// aliases returns other names of a header, which client libraries and other engines send. The first of its names that a request has
// counts. Aliases begin with a letter that extended knows.
func (name requestHeader) aliases() []string {
	switch name {
	case headerIncludeMetadata:
		return metadataAliases
	case headerProxySearch:
		return searchAliases
	case headerOriginNonce:
		return nonceAliases
	case headerOriginRemote:
		return remoteAliases
	case headerOriginTask:
		return taskAliases
	case headerOriginVersion:
		return versionAliases
	}
	return nil
}

var (
	metadataAliases = []string{"Meili-Include-Metadata"}
	searchAliases   = []string{"Meili-Proxy-Search"}
	nonceAliases    = originAliases("Nonce")
	remoteAliases   = originAliases("Remote")
	taskAliases     = originAliases("TaskUid")
	versionAliases  = originAliases("Network-Version")
)

func originAliases(name string) []string {
	return []string{"X-Svc-Proxy-Origin-" + name, "X-Meili-Proxy-Origin-" + name, "Meili-Proxy-Origin-" + name}
}

// in returns the value of the header in a request. It is empty for an absent header and for an empty one: see hasHeader. The bytes
// are valid until the headers change. A lookup writes to h, so goroutines must not share it.
func (name requestHeader) in(h *fasthttp.RequestHeader) []byte {
	// fasthttp copies a name and changes its case for a lookup. Every search looks up the first two, and few requests have a header
	// with aliases.
	switch name {
	case headerContentType:
		return h.ContentType()
	case headerContentEncoding:
		return h.ContentEncoding()
	}
	aliases := name.aliases()
	if aliases != nil && !extended(h) {
		return nil
	}
	v := h.Peek(string(name))
	if len(v) > 0 {
		return v
	}
	for _, alias := range aliases {
		if v := h.Peek(alias); len(v) > 0 {
			return v
		}
	}
	return v
}

// repeated reports whether a request has the header on several lines, which count like a list (RFC 9110, 5.3).
func (name requestHeader) repeated(h *fasthttp.RequestHeader) bool {
	return len(h.PeekAll(string(name))) > 1
}

// extended reports whether the request may have one of svc's own headers: a line that begins like one. Headers that were not parsed
// yet may be any.
func extended(h *fasthttp.RequestHeader) bool {
	raw := h.RawHeaders()
	if len(raw) == 0 {
		return true
	}
	for {
		switch raw[0] {
		case 'S', 's', 'M', 'm', 'X', 'x', ' ', '\t':
			return true
		}
		end := bytes.IndexByte(raw, '\n')
		if end < 0 || end+1 == len(raw) {
			return false
		}
		raw = raw[end+1:]
	}
}

// hasHeader reports whether a request has a header, even an empty one: for some names, Peek does not distinguish that from an absent
// one. It runs for every request, so it skips lines that begin with another letter.
func hasHeader(h *fasthttp.RequestHeader, name requestHeader) bool {
	raw, first := h.RawHeaders(), name[0]|0x20
	for i := 0; i < len(raw); {
		end := bytes.IndexByte(raw[i:], '\n')
		if end < 0 {
			end = len(raw) - i
		}
		if c := raw[i]; c|0x20 == first || c <= ' ' {
			key, _, ok := bytes.Cut(raw[i:i+end], []byte{':'})
			if ok && len(key) >= len(name) && bytes.EqualFold(bytes.TrimSpace(key), []byte(name)) {
				return true
			}
		}
		i += end + 1
	}
	return false
}
