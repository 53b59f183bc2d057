// Package outbound guards the requests that svc makes on behalf of users: webhooks, embedders, remotes, exports. A user who may
// configure an address must not reach what only this machine or its network can.
//
// Host names are no protection, because they may resolve to anything, and to something else a moment later. So the guard checks each
// connection: it sees the address being connected to, and sees it again after a redirect.
package outbound
