package search

import (
	"context"
	"errors"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/template"
	"svc/internal/turns"
	"svc/segment"
)

// maxPassages limits, in bytes, what a language model gets to read of one search, and what is shown of the documents.
const maxPassages = 1 << 20

// Passages answers r on the view for a language model. text has the hits as the chat settings of the index render them, separated by
// line breaks, and documents the shown parts as a JSON array. Errors are *apierr.Error or the context's;
// invalid_chat_setting_document_template if the template does not fit a hit.
func Passages(ctx context.Context, v *index.View, r *Request) (text string, documents []byte, err error) {
	resp := &Response{view: v, request: r}
	resp.paginate()
	k, err := newRanking(ctx, v, r, nil)
	if err != nil {
		return "", nil, err
	}
	resp.result, err = k.run(ctx, window{offset: resp.offset, limit: resp.limit})
	if err != nil {
		return "", nil, err
	}
	resp.distanceFrom = firstPoint(k.sort)
	chat := &v.Settings.Chat
	turn := turns.Of(ctx)
	work := template.Work{Account: turn.Account(), Yield: turn.Yield}
	t, err := template.Parse(work, chat.DocumentTemplate)
	if err != nil {
		return "", nil, unfit(v, err)
	}
	w := newHitWriter(turn, resp, 0)
	w.wanted, w.bare, w.plain = segment.Wanted{}, false, false // the template may ask for any field of w.doc
	rendered := []byte{}
	documents = []byte{'['}
	for i := range resp.result.Hits {
		if len(rendered) > maxPassages || len(documents) > maxPassages {
			break
		}
		if i > 0 {
			rendered = append(rendered, '\n')
			documents = append(documents, ',')
		}
		if documents, err = w.append(documents, &resp.result.Hits[i]); err != nil {
			return "", nil, err
		}
		passage, err := t.Render(work, w.doc, v.Settings.SearchesWhole, min(chat.DocumentTemplateMaxBytes, maxPassages))
		if err != nil {
			return "", nil, unfit(v, err)
		}
		rendered = append(rendered, passage...)
	}
	return string(rendered), append(documents, ']'), nil
}

// unfit returns the error of a chat template that cannot be rendered. It returns other errors unchanged.
func unfit(v *index.View, err error) error {
	if !errors.As(err, new(*template.RenderError)) && !errors.As(err, new(*template.ParseError)) {
		return err
	}
	return apierr.New("invalid_chat_setting_document_template", "`documentTemplate` of the `chat` settings of the index `%s` cannot be rendered for a document: %v.", v.UID, err)
}
