package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"svc/internal/client"
	"svc/internal/group"
	"svc/internal/vfs"
)

type groupTransferCommand struct {
	remoteOptions `embed:""`

	To string `name:"to" placeholder:"MEMBER" help:"Id or address of the voter that is to lead (default: the one that has most of the log)."`
}

// transferWait is how long the command waits until another voter leads.
const transferWait = 15 * time.Second

// Run has another voter lead, and waits until it does.
func (c *groupTransferCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	var s group.Status
	if err := to.Call(ctx, http.MethodPost, "/group/transfer", map[string]string{"member": c.To}, &s); err != nil {
		return err
	}
	leader, err := otherLeader(ctx, to, s.Member)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "the member %s at %s leads the group %q now\n", short(leader.Member), leader.Address, s.Name)
	return err
}

// otherLeader waits until another member than a given one leads.
func otherLeader(stopped context.Context, to *client.Client, former string) (group.MemberStatus, error) {
	ctx, cancel := context.WithTimeout(stopped, transferWait)
	defer cancel()
	for {
		var s group.Status
		if err := to.Call(ctx, http.MethodGet, "/group", nil, &s); err == nil {
			for _, m := range s.Members {
				if m.State == group.StateLeads && m.Member != former {
					return m, nil
				}
			}
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			if err := stopped.Err(); err != nil {
				return group.MemberStatus{}, err
			}
			return group.MemberStatus{}, errors.New("no other voter leads the group yet. See svc group status")
		}
	}
}

type groupRemoveCommand struct {
	remoteOptions `embed:""`

	Member string `arg:"" name:"member" help:"Id or address of the voter, as svc group status shows it."`
}

// Run removes a voter.
func (c *groupRemoveCommand) Run(p program) error {
	ctx, stop := untilStopped()
	defer stop()
	to, err := c.connect(p)
	if err != nil {
		return err
	}
	if err := to.Call(ctx, http.MethodDelete, "/group/members/"+url.PathEscape(c.Member), nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s does not belong to the group any more: stop it\n", c.Member)
	return err
}

type groupRejoinCommand struct {
	DBPath string `name:"db-path" required:"" placeholder:"DIR" help:"Data directory of the stopped voter."`
}

// Run makes the directory that of a new member.
func (c *groupRejoinCommand) Run(p program) (err error) {
	if _, err := group.ReadIdentity(vfs.OS, c.DBPath); err != nil {
		return fmt.Errorf("%s is not the data directory of a voter: %w", c.DBPath, err)
	}
	lock, err := lockDataDir(vfs.OS, c.DBPath)
	if err != nil {
		return err
	}
	defer closing(&err, "the data directory", lock)
	id, err := group.Rejoin(vfs.OS, c.DBPath)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s belongs to the new member %s now. Start it as before: it joins the group %q and copies what has changed.\n", c.DBPath, short(id.Member), id.Name)
	return err
}

type groupRecoverCommand struct {
	DBPath string `name:"db-path" required:"" placeholder:"DIR" help:"Data directory of the stopped voter."`
	Addr   string `name:"group-addr" placeholder:"HOST:PORT" help:"Its --group-addr. Without it, the command only shows how far the data are."`
}

// Run turns the directory into that of the only voter of a new group.
func (c *groupRecoverCommand) Run(p program) (err error) {
	if _, _, err := net.SplitHostPort(c.Addr); c.Addr != "" && err != nil {
		return fmt.Errorf("--group-addr: %w", err)
	}
	if _, err := group.ReadIdentity(vfs.OS, c.DBPath); err != nil {
		return fmt.Errorf("%s is not the data directory of a voter: %w", c.DBPath, err)
	}
	lock, err := lockDataDir(vfs.OS, c.DBPath)
	if err != nil {
		return err
	}
	defer closing(&err, "the data directory", lock)
	r, err := group.Recover(vfs.OS, c.DBPath, c.Addr, c.Addr != "")
	if err != nil {
		return err
	}
	if c.Addr == "" {
		_, err = fmt.Fprintf(p.out, "%s has the changes of the group %q up to %v, of the election term %d.\n"+
			"Recover the voter with the highest election term, and among equal terms the one with the highest number.\n"+
			"Changes that only lost voters have are lost.\n"+
			"To make this voter the only one of a new group, add its --group-addr.\n", c.DBPath, r.Name, r.Position, r.Elected)
		return err
	}
	_, err = fmt.Fprintf(p.out, "%s belongs to the only voter of a new group %q now, with the changes up to %v.\n"+
		"Start it with --group-join %s. Others join it with empty data directories, or after svc group rejoin.\n", c.DBPath, r.Name, r.Position, c.Addr)
	return err
}
