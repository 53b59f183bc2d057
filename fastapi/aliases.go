package fastapi

import (
	"slices"
	"strconv"
	"strings"

	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/index"
)

// A request resolves aliases as they are when it begins, even if they move before it ends.

// aliasesKey is the key of the request value with these aliases. aliasKey is that of the alias in the path, if there was one.
type (
	aliasesKey struct{}
	aliasKey   struct{}
)

// followAlias replaces an alias in the path by the index behind it.
func (s *Server) followAlias(ctx *fasthttp.RequestCtx) {
	aliases := s.catalog.Aliases()
	if alias, ok := ctx.UserValue(aliasKey{}).(string); ok { // it was followed before
		ctx.SetUserValue("index_uid", alias)
		ctx.RemoveUserValue(aliasKey{})
	}
	if aliases == nil {
		ctx.RemoveUserValue(aliasesKey{})
		return
	}
	ctx.SetUserValue(aliasesKey{}, aliases)
	if ctx.UserValue("index_uid") == nil {
		return
	}
	if alias := pathValue(ctx, "index_uid"); aliases.Has(alias) {
		ctx.SetUserValue("index_uid", aliases.Index(alias))
		ctx.SetUserValue(aliasKey{}, alias)
	}
}

// aliasesOf returns the aliases that a request knows.
func aliasesOf(ctx *fasthttp.RequestCtx) *index.Aliases {
	aliases, _ := ctx.UserValue(aliasesKey{}).(*index.Aliases)
	return aliases
}

// reach returns the index behind a name in a body. It refuses an index that the caller has no right to; the error has the name.
func reach(ctx *fasthttp.RequestCtx, name string) (uid string, err error) {
	uid = aliasesOf(ctx).Index(name)
	if c := caller(ctx); !c.Reaches(uid) {
		return "", c.Forbidden(name)
	}
	return uid, nil
}

// followAll puts indexes in the place of their aliases.
func followAll(ctx *fasthttp.RequestCtx, uids []string) {
	for i, uid := range uids {
		uids[i] = aliasesOf(ctx).Index(uid)
	}
}

// writtenPath returns the path of a write in the form for other instances, which have other aliases.
func writtenPath(ctx *fasthttp.RequestCtx) string {
	path := string(ctx.URI().PathOriginal())
	if ctx.UserValue(aliasKey{}) == nil {
		return path
	}
	const before = "/indexes/"
	rest := path[len(before):]
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		return before + pathValue(ctx, "index_uid") + rest[i:]
	}
	return before + pathValue(ctx, "index_uid")
}

// aliasView is an alias as the API shows it.
type aliasView struct {
	Alias    string  `json:"alias"`
	IndexUID *string `json:"indexUid"` // nil: it was deleted
}

func viewAlias(aliases *index.Aliases, alias string) aliasView {
	uid := aliases.Index(alias)
	return aliasView{alias, &uid}
}

// aliasInPath returns the alias in the path.
func aliasInPath(ctx *fasthttp.RequestCtx) (string, error) {
	alias := pathValue(ctx, "alias")
	if !validUID(alias) {
		return "", apierr.New("invalid_alias_uid", "`%s` in the path must be %s.", shorten([]byte(alias)), aliasForm)
	}
	return alias, nil
}

const aliasForm = "an alias: letters from a to z in either case, digits, - and _, at most 400 characters"

// listAliases lists the aliases of indexes that the key reaches, in byte order.
func (s *Server) listAliases(ctx *fasthttp.RequestCtx) error {
	p := paging{limit: defaultLimit}
	if err := decodeQuery(&p, ctx.QueryArgs(), indexListParams); err != nil {
		return err
	}
	aliases := aliasesOf(ctx)
	all := aliases.All()
	if allowed := caller(ctx).Limit(); allowed != nil {
		all = slices.DeleteFunc(all, func(alias string) bool { return !allowed(aliases.Index(alias)) })
	}
	return answerPage(s, ctx, all, p.offset, p.limit, func(alias string) (aliasView, bool) { return viewAlias(aliases, alias), true })
}

// getAlias shows an alias. An alias of an index that the key does not reach is not found.
func (s *Server) getAlias(ctx *fasthttp.RequestCtx) error {
	alias, err := aliasInPath(ctx)
	if err != nil {
		return err
	}
	aliases := aliasesOf(ctx)
	if !aliases.Has(alias) || !caller(ctx).Reaches(aliases.Index(alias)) {
		return index.NoAlias(alias)
	}
	return answer(ctx, viewAlias(aliases, alias))
}

// aliasMove is a move of a body.
type aliasMove struct {
	alias string
	uid   string
	given bool // indexUid was given; uid is empty if it is null
}

var aliasParams = []param[aliasMove]{
	{name: "indexUid", code: "invalid_alias_index_uid", kind: textual, shape: uidShape, set: setAliasIndex},
}

var aliasMoveParams = []param[aliasMove]{
	{name: "alias", code: "invalid_alias_uid", kind: textual, shape: uidShape, set: func(m *aliasMove, a *arg) error {
		if !validUID(a.text) {
			return a.expected(aliasForm)
		}
		m.alias = a.text
		return nil
	}},
	{name: "indexUid", code: "invalid_alias_index_uid", kind: raw, shape: orNull(uidShape), set: func(m *aliasMove, a *arg) error {
		if a.json.null() {
			m.given = true
			return nil
		}
		var ok bool
		if a.text, ok = a.json.text(); !ok {
			return a.expected(uidForm + ", or null")
		}
		return setAliasIndex(m, a)
	}},
}

func setAliasIndex(m *aliasMove, a *arg) error {
	if !validUID(a.text) {
		return a.expected(uidForm)
	}
	m.uid, m.given = a.text, true
	return nil
}

func (s *Server) putAlias(ctx *fasthttp.RequestCtx) error {
	alias, err := aliasInPath(ctx)
	if err != nil {
		return err
	}
	m := aliasMove{alias: alias}
	if err := readObject(s, ctx, &m, aliasParams); err != nil {
		return err
	}
	if !m.given {
		return apierr.New("missing_alias_index_uid", "`indexUid` is missing: name the index of the alias.")
	}
	if err := s.move(ctx, []aliasMove{m}); err != nil {
		return err
	}
	uid := aliasesOf(ctx).Index(m.uid)
	return answer(ctx, aliasView{alias, &uid})
}

func (s *Server) deleteAlias(ctx *fasthttp.RequestCtx) error {
	alias, err := aliasInPath(ctx)
	if err != nil {
		return err
	}
	if err := s.move(ctx, []aliasMove{{alias: alias}}); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}

// moveAliases moves all aliases in the body at once, or none of them. An indexUid of null deletes the alias.
func (s *Server) moveAliases(ctx *fasthttp.RequestCtx) error {
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	if !body.array() {
		return apierr.New("bad_request", "The body must be an array of objects such as `{\"alias\": \"a\", \"indexUid\": \"b\"}`, but it is %s.", body.kind())
	}
	moves := []aliasMove{}
	seen := map[string]bool{}
	for element := range body.elements() {
		if len(moves) == maxListEntries {
			return apierr.New("bad_request", "The body has more than %d moves. Send them in several requests.", maxListEntries)
		}
		var m aliasMove
		path := "[" + strconv.Itoa(len(moves)) + "]."
		if err := decode(&m, element, aliasMoveParams, object{path: path, code: "bad_request"}); err != nil {
			return err
		}
		switch {
		case m.alias == "":
			return apierr.New("missing_alias_uid", "`%salias` is missing: name the alias.", path)
		case !m.given:
			return apierr.New("missing_alias_index_uid", "`%sindexUid` is missing: name the index of the alias, or null to delete the alias.", path)
		case seen[m.alias]:
			return apierr.New("duplicate_alias_found", "The alias `%s` is named twice. A request moves an alias once.", m.alias)
		}
		seen[m.alias] = true
		moves = append(moves, m)
	}
	if err := s.move(ctx, moves); err != nil {
		return err
	}
	views := make([]aliasView, len(moves))
	for i, m := range moves {
		views[i].Alias = m.alias
		if m.uid != "" {
			uid := aliasesOf(ctx).Index(m.uid)
			views[i].IndexUID = &uid
		}
	}
	return answer(ctx, struct {
		Results []aliasView `json:"results"`
	}{views})
}

// move makes moves, all or none. The caller needs rights to the alias by its own name, to the index behind it and to its new index,
// because an alias opens indexes to all keys that name it.
func (s *Server) move(ctx *fasthttp.RequestCtx, moves []aliasMove) error {
	aliases, c := aliasesOf(ctx), caller(ctx)
	all, names := make([]index.AliasMove, len(moves)), make([]string, len(moves))
	for i, m := range moves {
		names[i] = m.alias
		if !c.ReachesName(m.alias) {
			return auth.Refuse("The API key has no access to the name `%s`. Its `indexes` must cover the names of the aliases that it changes.", m.alias)
		}
		uid := aliases.Index(m.uid)
		for _, of := range []string{uid, aliases.Index(m.alias)} {
			if of != "" && of != m.alias && !c.ReachesName(of) {
				return c.Forbidden(m.alias)
			}
		}
		all[i] = index.AliasMove{Alias: m.alias, UID: uid}
	}
	if len(all) == 0 {
		return nil
	}
	concerns(ctx, strings.Join(names, ", "))
	return s.catalog.MoveAliases(all)
}
