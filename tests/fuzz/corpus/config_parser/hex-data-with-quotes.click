require(compact_config, package "p q");
# 12 "other \"file\""
x :: Message("\\ \" \<48"/* > */ 45> \
" '$a\' \<4 8>, // end )
# 4
 /* ) */ (nested)$,y-{ d e}, ${z[0]} "$cmd" $cmd $(h.x "$y"));
