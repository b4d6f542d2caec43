graph [
  node [ id 7 ]
  node [ id 9 ]
  node [ id 8 ]
  edge [ source 7 target 8 ]
  edge [ source 8 target 9 ]
]
