# How pint (github.com/cloudflare/pint) reads the rules here and the manifests
# that are made of them: with its own checks, and two of ours. In the root:
#
#	bin/tools/pint --offline --config alerts/.pint.hcl lint --min-severity info --fail-on info alerts/*.yaml
#
# go test ./deploy does that. It needs no Prometheus; checks that do are not run.

parser {
  names   = "legacy"                # what Prometheus 2 reads too
  relaxed = ["(.*/)?kubernetes/.*"] # rules inside of other objects
}

rule {
  aggregate ".+" {
    keep     = ["cluster", "job"]
    severity = "bug"
    comment  = "One Prometheus may watch several clusters: an alert says which, and of which job."
  }

  # Raw metrics; the records have a colon.
  selector "[^:]+" {
    requiredLabels = ["job"]
    severity       = "bug"
    comment        = "In a cluster others expose the same names: workqueue_depth is any operator's."
  }
}
