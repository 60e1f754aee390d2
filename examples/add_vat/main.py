import json, sys
from decimal import Decimal

net = Decimal(json.load(sys.stdin, parse_float=Decimal)["net"])
rate = Decimal("20")
vat = (net * rate / 100).quantize(Decimal("0.01"))
print(json.dumps({"net": str(net), "rate": str(rate), "vat": str(vat), "gross": str(net + vat)}))
