package main

import "errors"

// costOptions bound what requests may take.
type costOptions struct {
	JSONSize     size `name:"http-json-size-limit" default:"1 MiB" placeholder:"SIZE" help:"Largest request body other than documents, decompressed (default: ${default}); ten times that for settings."`
	AnswerSize   size `name:"http-answer-size-limit" default:"100 MB" placeholder:"SIZE" help:"Largest response, before compression (default: ${default}, at most half of --http-memory)."`
	Memory       size `name:"http-memory" default:"0" placeholder:"SIZE" help:"Memory for the bodies and responses of all requests together (default: an eighth of the machine's)."`
	Connections  int  `name:"http-connections" default:"0" placeholder:"N" help:"Maximum number of connections (default: one per 384 KiB of the machine's memory, at most 50000 and half of the open files)."`
	MultiQueries int  `name:"max-multi-search-queries" default:"1000" placeholder:"N" help:"Maximum number of queries in a multi-search (default: ${default})."`
}

func (o *costOptions) validate() error {
	switch {
	case o.JSONSize == 0:
		return errors.New("--http-json-size-limit must be more than 0")
	case o.AnswerSize == 0:
		return errors.New("--http-answer-size-limit must be more than 0")
	case o.Connections < 0:
		return errors.New("--http-connections must be 0 or more")
	case o.MultiQueries < 1:
		return errors.New("--max-multi-search-queries must be 1 or more")
	}
	return nil
}

// memory is how many bytes requests may hold.
func (o *costOptions) memory() int64 {
	if o.Memory > 0 {
		return int64(o.Memory)
	}
	return memoryBytes() / 8
}

// connections is the maximum number of connections. An idle one takes some 40 KiB.
func (o *costOptions) connections() int {
	if o.Connections > 0 {
		return o.Connections
	}
	const perConnection, most = 384 << 10, 50000
	return int(min(memoryBytes()/perConnection, most, max(openFiles()/2, 1)))
}
