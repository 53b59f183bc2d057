# completion of svc for bash, made by svc generate: change the table of options instead
_svc() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command= word
	COMPREPLY=()
	for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
		case "$command/$word" in
		'/serve') command='serve' ;;
		'/health') command='health' ;;
		'/version') command='version' ;;
		'/licenses') command='licenses' ;;
		'/help') command='help' ;;
		'/import') command='import' ;;
		'/search') command='search' ;;
		'/tasks') command='tasks' ;;
		'/key') command='key' ;;
		'key/list') command='key list' ;;
		'key/create') command='key create' ;;
		'key/delete') command='key delete' ;;
		'/index') command='index' ;;
		'index/list') command='index list' ;;
		'index/create') command='index create' ;;
		'index/update') command='index update' ;;
		'index/delete') command='index delete' ;;
		'index/swap') command='index swap' ;;
		'index/compact') command='index compact' ;;
		'/settings') command='settings' ;;
		'settings/show') command='settings show' ;;
		'settings/set') command='settings set' ;;
		'settings/reset') command='settings reset' ;;
		'/analytics') command='analytics' ;;
		'/dump') command='dump' ;;
		'/snapshot') command='snapshot' ;;
		'/export') command='export' ;;
		'/segment') command='segment' ;;
		'segment/inspect') command='segment inspect' ;;
		'segment/verify') command='segment verify' ;;
		'segment/salvage') command='segment salvage' ;;
		esac
	done
	case $prev in
	--env) COMPREPLY=($(compgen -W 'development production' -- "$cur")); return ;;
	--api-version) COMPREPLY=($(compgen -W '1.42 1.54' -- "$cur")); return ;;
	--format) COMPREPLY=($(compgen -W 'auto json ndjson csv' -- "$cur")); return ;;
	--db-path|--dump-dir|--config-file-path|--audit-log|--ssl-cert-path|--ssl-key-path|--ssl-auth-path|--ssl-ocsp-path|--import-dump|--import-snapshot|--snapshot-dir|--experimental-s3-web-identity-token-file|--models-dir|--state|--file|--from|--out|--out) compopt -o default; return ;;
	--http-addr|--master-key|--http-payload-size-limit|--max-indexing-memory|--search-cache-memory|--max-indexing-threads|--inspection-interval|--task-webhook-url|--task-webhook-authorization-header|--log-level|--slow-search-ms|--analytics-retention|--metrics-prefix|--trace-endpoint|--trace-headers|--trace-ratio|--http-json-size-limit|--http-answer-size-limit|--http-memory|--http-connections|--max-multi-search-queries|--rule-query-words|--rule-active-rules|--rule-pins|--rule-word-combinations|--rule-filter-combinations|--rule-filter-or|--rule-filter-and|--rule-filter-depth|--s3-bucket-url|--s3-bucket-region|--s3-bucket-name|--s3-snapshot-prefix|--s3-access-key|--s3-secret-key|--experimental-s3-role-arn|--experimental-s3-max-in-flight-parts|--experimental-s3-compression-level|--experimental-s3-signature-duration-seconds|--experimental-s3-multipart-part-size|--ollama-url|--openai-api-key|--openai-api-hosts|--experimental-embedding-cache-entries|--experimental-rest-embedder-timeout-seconds|--experimental-rest-embedder-max-retry-duration-seconds|--experimental-config-embedder-failure-modes|--experimental-search-queue-size|--experimental-drop-search-after|--experimental-nb-searches-per-core|--experimental-logs-mode|--experimental-max-number-of-batched-tasks|--experimental-concurrent-indexes|--experimental-remote-search-timeout-seconds|--network-outbox-limit|--experimental-proxy-request-timeout-seconds|--experimental-proxy-backoff-timeout-seconds|--experimental-allowed-ip-networks|--experimental-limit-batched-tasks-total-size|--experimental-personalization-api-key|--experimental-personalization-url|--url|--url|--key|--from|--from-key|--primary-key|--csv-delimiter|--batch-size|--max-tasks|--url|--key|--filter|--sort|--facets|--attributes|--embedder|--semantic-ratio|--vector|--limit|--offset|--url|--key|--index|--status|--type|--limit|--url|--key|--url|--key|--action|--index|--name|--expires|--searches-per-second|--writes-per-second|--concurrent|--url|--key|--url|--key|--url|--key|--primary-key|--url|--key|--rename|--primary-key|--url|--key|--url|--key|--url|--key|--url|--key|--url|--key|--url|--key|--url|--key|--index|--from|--to|--limit|--url|--key|--url|--key|--url|--key|--to-key|--index|--filter|--payload-size) return ;;
	esac
	case $command in
	'') COMPREPLY=($(compgen -W 'serve health version licenses help import search tasks key index settings analytics dump snapshot export segment --db-path --http-addr --master-key --env --http-payload-size-limit --max-indexing-memory --search-cache-memory --max-indexing-threads --inspection-interval --dump-dir --task-webhook-url --task-webhook-authorization-header --log-level --api-version --no-dashboard --demo --no-analytics --config-file-path --pprof --slow-search-ms --audit-log --analytics-retention --metrics-prefix --trace-endpoint --trace-headers --trace-ratio --http-json-size-limit --http-answer-size-limit --http-memory --http-connections --max-multi-search-queries --rule-query-words --rule-active-rules --rule-pins --rule-word-combinations --rule-filter-combinations --rule-filter-or --rule-filter-and --rule-filter-depth --ssl-cert-path --ssl-key-path --ssl-auth-path --ssl-require-auth --ssl-ocsp-path --ssl-resumption --ssl-tickets --import-dump --ignore-missing-dump --ignore-dump-if-db-exists --import-snapshot --ignore-missing-snapshot --ignore-snapshot-if-db-exists --snapshot-dir --schedule-snapshot --experimental-no-snapshot-compaction --s3-bucket-url --s3-bucket-region --s3-bucket-name --s3-snapshot-prefix --s3-access-key --s3-secret-key --experimental-s3-role-arn --experimental-s3-web-identity-token-file --experimental-s3-max-in-flight-parts --experimental-s3-compression-level --experimental-s3-signature-duration-seconds --experimental-s3-multipart-part-size --models-dir --ollama-url --openai-api-key --openai-api-hosts --experimental-embedding-cache-entries --experimental-rest-embedder-timeout-seconds --experimental-rest-embedder-max-retry-duration-seconds --experimental-config-embedder-failure-modes --experimental-contains-filter --experimental-enable-metrics --experimental-enable-logs-route --experimental-search-queue-size --experimental-drop-search-after --experimental-nb-searches-per-core --experimental-logs-mode --experimental-max-number-of-batched-tasks --experimental-concurrent-indexes --experimental-replication-parameters --experimental-remote-search-timeout-seconds --network-outbox-limit --experimental-proxy-request-timeout-seconds --experimental-proxy-backoff-timeout-seconds --experimental-allowed-ip-networks --experimental-limit-batched-tasks-total-size --experimental-personalization-api-key --experimental-personalization-url --upgrade-db --experimental-dumpless-upgrade --experimental-reduce-indexing-memory-usage --experimental-no-edition-2024-for-settings --experimental-no-edition-2024-for-dumps --help --version' -- "$cur")) ;;
	'serve') COMPREPLY=($(compgen -W '--db-path --http-addr --master-key --env --http-payload-size-limit --max-indexing-memory --search-cache-memory --max-indexing-threads --inspection-interval --dump-dir --task-webhook-url --task-webhook-authorization-header --log-level --api-version --no-dashboard --demo --no-analytics --config-file-path --pprof --slow-search-ms --audit-log --analytics-retention --metrics-prefix --trace-endpoint --trace-headers --trace-ratio --http-json-size-limit --http-answer-size-limit --http-memory --http-connections --max-multi-search-queries --rule-query-words --rule-active-rules --rule-pins --rule-word-combinations --rule-filter-combinations --rule-filter-or --rule-filter-and --rule-filter-depth --ssl-cert-path --ssl-key-path --ssl-auth-path --ssl-require-auth --ssl-ocsp-path --ssl-resumption --ssl-tickets --import-dump --ignore-missing-dump --ignore-dump-if-db-exists --import-snapshot --ignore-missing-snapshot --ignore-snapshot-if-db-exists --snapshot-dir --schedule-snapshot --experimental-no-snapshot-compaction --s3-bucket-url --s3-bucket-region --s3-bucket-name --s3-snapshot-prefix --s3-access-key --s3-secret-key --experimental-s3-role-arn --experimental-s3-web-identity-token-file --experimental-s3-max-in-flight-parts --experimental-s3-compression-level --experimental-s3-signature-duration-seconds --experimental-s3-multipart-part-size --models-dir --ollama-url --openai-api-key --openai-api-hosts --experimental-embedding-cache-entries --experimental-rest-embedder-timeout-seconds --experimental-rest-embedder-max-retry-duration-seconds --experimental-config-embedder-failure-modes --experimental-contains-filter --experimental-enable-metrics --experimental-enable-logs-route --experimental-search-queue-size --experimental-drop-search-after --experimental-nb-searches-per-core --experimental-logs-mode --experimental-max-number-of-batched-tasks --experimental-concurrent-indexes --experimental-replication-parameters --experimental-remote-search-timeout-seconds --network-outbox-limit --experimental-proxy-request-timeout-seconds --experimental-proxy-backoff-timeout-seconds --experimental-allowed-ip-networks --experimental-limit-batched-tasks-total-size --experimental-personalization-api-key --experimental-personalization-url --upgrade-db --experimental-dumpless-upgrade --experimental-reduce-indexing-memory-usage --experimental-no-edition-2024-for-settings --experimental-no-edition-2024-for-dumps --help --version' -- "$cur")) ;;
	'health') COMPREPLY=($(compgen -W '--url --help --version' -- "$cur")) ;;
	'version') COMPREPLY=($(compgen -W '--help --version' -- "$cur")) ;;
	'licenses') COMPREPLY=($(compgen -W '--german-words --help --version' -- "$cur")) ;;
	'help') COMPREPLY=($(compgen -W '--help --version' -- "$cur")) ;;
	'import') compopt -o default; COMPREPLY=($(compgen -W '--url --key --from --from-key --primary-key --format --csv-delimiter --update --batch-size --max-tasks --state --restart --help --version' -- "$cur")) ;;
	'search') COMPREPLY=($(compgen -W '--url --key --filter --sort --facets --attributes --embedder --semantic-ratio --vector --limit --offset --json --help --version' -- "$cur")) ;;
	'tasks') COMPREPLY=($(compgen -W '--url --key --index --status --type --limit --wait --cancel --json --help --version' -- "$cur")) ;;
	'key') COMPREPLY=($(compgen -W 'list create delete --help --version' -- "$cur")) ;;
	'key list') COMPREPLY=($(compgen -W '--url --key --show-keys --help --version' -- "$cur")) ;;
	'key create') COMPREPLY=($(compgen -W '--url --key --action --index --name --expires --searches-per-second --writes-per-second --concurrent --help --version' -- "$cur")) ;;
	'key delete') COMPREPLY=($(compgen -W '--url --key --help --version' -- "$cur")) ;;
	'index') COMPREPLY=($(compgen -W 'list create update delete swap compact --help --version' -- "$cur")) ;;
	'index list') COMPREPLY=($(compgen -W '--url --key --json --help --version' -- "$cur")) ;;
	'index create') COMPREPLY=($(compgen -W '--url --key --primary-key --help --version' -- "$cur")) ;;
	'index update') COMPREPLY=($(compgen -W '--url --key --rename --primary-key --help --version' -- "$cur")) ;;
	'index delete') COMPREPLY=($(compgen -W '--url --key --help --version' -- "$cur")) ;;
	'index swap') COMPREPLY=($(compgen -W '--url --key --help --version' -- "$cur")) ;;
	'index compact') COMPREPLY=($(compgen -W '--url --key --help --version' -- "$cur")) ;;
	'settings') COMPREPLY=($(compgen -W 'show set reset --help --version' -- "$cur")) ;;
	'settings show') COMPREPLY=($(compgen -W '--url --key --help --version' -- "$cur")) ;;
	'settings set') COMPREPLY=($(compgen -W '--url --key --file --help --version' -- "$cur")) ;;
	'settings reset') COMPREPLY=($(compgen -W '--url --key --help --version' -- "$cur")) ;;
	'analytics') COMPREPLY=($(compgen -W '--url --key --index --from --to --limit --delete --json --help --version' -- "$cur")) ;;
	'dump') COMPREPLY=($(compgen -W '--url --key --from --out --help --version' -- "$cur")) ;;
	'snapshot') COMPREPLY=($(compgen -W '--url --key --help --version' -- "$cur")) ;;
	'export') COMPREPLY=($(compgen -W '--url --key --to-key --index --filter --override-settings --payload-size --help --version' -- "$cur")) ;;
	'segment') COMPREPLY=($(compgen -W 'inspect verify salvage --help --version' -- "$cur")) ;;
	'segment inspect') compopt -o default; COMPREPLY=($(compgen -W '--bytes --help --version' -- "$cur")) ;;
	'segment verify') compopt -o default; COMPREPLY=($(compgen -W '--help --version' -- "$cur")) ;;
	'segment salvage') compopt -o default; COMPREPLY=($(compgen -W '--out --help --version' -- "$cur")) ;;
	esac
}
complete -F _svc svc
