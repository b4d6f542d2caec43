graph [
  node [ id 1 label "a"
  edge [ source 1 target
